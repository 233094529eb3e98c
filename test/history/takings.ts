/**
 * Holds that were taken away from outside: data loss, a deleted key, a forced release. From then on the holder and the
 * next one may both believe for a moment, which is documented; before it, and between all other holds, I1 stands. So each
 * such hold is cut at the taking, and nothing else is excused.
 *
 * Which holds a taking met is told by when Redis issued them, not by when their process heard of it: a token is the
 * server's time in µs at its issue.
 */
import type { EventOf } from './events.ts'
import { groupBy, lowerBound } from './lists.ts'

/** The server is on this machine, so its clock is ours; this is for the time between two readings of the clocks, in ms. */
const TOLERANCE = 50

interface Cut {
  readonly until: number
  /** The earliest beginning of this taking and all later ones. */
  readonly earliest: number
}

export class Takings {
  /** Those of one key; those of all keys under undefined. */
  readonly #cuts: ReadonlyMap<string | undefined, Cut[]>
  readonly #clocks: readonly EventOf<'clock'>[]

  constructor(taken: readonly EventOf<'taken'>[], clocks: readonly EventOf<'clock'>[]) {
    this.#clocks = clocks
    this.#cuts = new Map([...groupBy(taken, ({ key }) => key)].map(([key, list]) => [key, cuts(list)]))
  }

  /** When the hold may have been taken away, at the earliest; infinite: it was not. */
  cut({ key, token, t }: EventOf<'grant'>): number {
    const issued = this.#issued(token, t) - TOLERANCE
    const next = (list: Cut[] | undefined) => {
      const cut = list?.[lowerBound(list, issued, ({ until }) => until)]
      return cut ? cut.earliest : Number.POSITIVE_INFINITY
    }
    return Math.min(next(this.#cuts.get(undefined)), next(this.#cuts.get(key)))
  }

  /** The monotonic time at which Redis issued the token: never later than the grant was heard of. */
  #issued(token: number, heard: number): number {
    const after = lowerBound(this.#clocks, heard, ({ t }) => t)
    const clock = this.#clocks[after] ?? this.#clocks[after - 1]
    return clock ? Math.min(heard, token / 1000 - clock.wall + clock.t) : heard
  }
}

function cuts(taken: readonly EventOf<'taken'>[]): Cut[] {
  const list: Cut[] = []
  let earliest = Number.POSITIVE_INFINITY
  for (const { from, t } of [...taken].reverse()) {
    earliest = Math.min(earliest, from)
    list.push({ until: t, earliest })
  }
  return list.reverse()
}

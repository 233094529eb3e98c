/**
 * Holds that were taken away from outside: data loss, a deleted key, a forced release, a failover that lost the last
 * writes, a server's clock that stepped forward over their ends. From then on the holder and the next one may both
 * believe for a moment, which is documented; before it, and between all other holds, I1 stands. So each such hold is cut
 * at the taking, and nothing else is excused.
 *
 * Which holds a taking met is told by when Redis issued them, not by when their process heard of it: a token is the
 * server's time in µs at its issue. A server's clock that has been set back issues tokens that are ahead of it; of
 * those it is only known that they were issued after their request.
 *
 * At a failover the takings are told by process: up to the moment at which its own way led to the new master, a process
 * was granted locks by the old one. What it is granted later has no excuse.
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

type Cuts = ReadonlyMap<string, Cut[]>

export class Takings {
  readonly #taken: readonly EventOf<'taken'>[]
  readonly #ofAll: Cut[]
  readonly #ofKey: Cuts
  readonly #ofWorker: Cuts
  readonly #clocks: readonly EventOf<'clock'>[]

  constructor(taken: readonly EventOf<'taken'>[], clocks: readonly EventOf<'clock'>[]) {
    this.#taken = taken
    this.#clocks = clocks
    this.#ofAll = cuts(taken.filter(({ key, worker }) => key === undefined && worker === undefined))
    this.#ofKey = cutsOf(taken, ({ key }) => key)
    this.#ofWorker = cutsOf(taken, ({ worker }) => worker)
  }

  /** When the hold may have been taken away, at the earliest; infinite: it was not. `requested`: when it was asked for. */
  cut(grant: EventOf<'grant'>, requested = grant.t): number {
    const issued = this.#issued(grant, requested) - TOLERANCE
    const next = (list: Cut[] | undefined) => {
      const cut = list?.[lowerBound(list, issued, ({ until }) => until)]
      return cut ? cut.earliest : Number.POSITIVE_INFINITY
    }
    return Math.min(next(this.#ofAll), next(this.#ofKey.get(grant.key)), next(this.#ofWorker.get(grant.worker)))
  }

  /** Whether the lock of this key was taken away between the two times, from whoever held it then. */
  of(key: string, from: number, to: number): boolean {
    return this.#taken.some(event => event.key === key && event.t >= from && event.from <= to)
  }

  /**
   * The monotonic time at which Redis issued the token: where its clock said so, between the request and the moment when
   * the grant was heard of. Where it never did, the token was ahead of the clock, or is that of an earlier hold.
   */
  #issued({ token, t: heard }: EventOf<'grant'>, requested: number): number {
    const said = token / 1000
    const clocks = this.#clocks
    const first = Math.max(0, lowerBound(clocks, requested, ({ t }) => t) - 1)
    for (let i = first; i < clocks.length && (i === first || clocks[i]!.t <= heard); i++) {
      const { t, wall } = clocks[i]!
      const begin = i === first ? requested : t
      const end = Math.min(clocks[i + 1]?.t ?? heard, heard)
      const at = t + said - wall
      if (at >= begin - TOLERANCE && at <= end + TOLERANCE) return Math.min(Math.max(at, requested), heard)
    }
    return Math.min(requested, heard)
  }
}

function cutsOf(taken: readonly EventOf<'taken'>[], of: (event: EventOf<'taken'>) => string | undefined): Cuts {
  const groups = groupBy(taken, of)
  groups.delete(undefined)
  return new Map([...(groups as Map<string, EventOf<'taken'>[]>)].map(([name, list]) => [name, cuts(list)]))
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

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
 * Servers of a quorum that come back empty are not counted until every hold of before has ended. So a holder may be told before its time,
 * and nobody else may have the lock for that: such a taking is `closed`, and excuses the early loss only.
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

/** Takings by whom they are about. */
class Losses {
  readonly #ofAll: Cut[]
  readonly #ofKey: Cuts
  readonly #ofWorker: Cuts

  constructor(taken: readonly EventOf<'taken'>[]) {
    this.#ofAll = cuts(taken.filter(({ key, worker }) => key === undefined && worker === undefined))
    this.#ofKey = cutsOf(taken, ({ key }) => key)
    this.#ofWorker = cutsOf(taken, ({ worker }) => worker)
  }

  /** The beginning of the earliest taking that may have met a hold that was issued then; infinite: none did. */
  of({ key, worker }: EventOf<'grant'>, issued: number): number {
    const next = (list: Cut[] | undefined) => {
      const cut = list?.[lowerBound(list, issued, ({ until }) => until)]
      return cut ? cut.earliest : Number.POSITIVE_INFINITY
    }
    return Math.min(next(this.#ofAll), next(this.#ofKey.get(key)), next(this.#ofWorker.get(worker)))
  }
}

export class Takings {
  readonly #taken: readonly EventOf<'taken'>[]
  readonly #opening: Losses
  readonly #all: Losses
  /** The readings of each server's clock. */
  readonly #clocks: readonly (readonly EventOf<'clock'>[])[]

  constructor(taken: readonly EventOf<'taken'>[], clocks: readonly EventOf<'clock'>[]) {
    this.#taken = taken
    this.#opening = new Losses(taken.filter(({ closed }) => !closed))
    this.#all = new Losses(taken)
    this.#clocks = [...groupBy(clocks, ({ server }) => server).values()]
  }

  /**
   * From when on somebody else may have the lock, because the hold was taken away, at the earliest; infinite: never. `requested`: when
   * the hold was asked for.
   */
  cut(grant: EventOf<'grant'>, requested = grant.t): number {
    return this.#opening.of(grant, this.#issued(grant, requested) - TOLERANCE)
  }

  /** From when on the holder may be told that the hold was taken away, whether or not somebody else may have the lock by then. */
  told(grant: EventOf<'grant'>, requested = grant.t): number {
    return this.#all.of(grant, this.#issued(grant, requested) - TOLERANCE)
  }

  /** Whether the lock of this key was taken away between the two times, from whoever held it then. */
  of(key: string, from: number, to: number): boolean {
    return this.#taken.some(event => event.key === key && event.t >= from && event.from <= to)
  }

  /**
   * The monotonic time at which Redis issued the token: where its clock said so, between the request and the moment when
   * the grant was heard of. Where it never did, the token was ahead of the clock, or is that of an earlier hold. Where the clocks of
   * several servers did, any of them may have issued it: the earliest time counts, which excuses most.
   */
  #issued(grant: EventOf<'grant'>, requested: number): number {
    const said = this.#clocks.flatMap(clocks => saidBy(clocks, grant, requested) ?? [])
    return said.length > 0 ? Math.min(...said) : Math.min(requested, grant.t)
  }
}

/** When this clock said the time of the token. */
function saidBy(
  clocks: readonly EventOf<'clock'>[],
  { token, t: heard }: EventOf<'grant'>,
  requested: number,
): number | undefined {
  const said = token / 1000
  const first = Math.max(0, lowerBound(clocks, requested, ({ t }) => t) - 1)
  for (let i = first; i < clocks.length && (i === first || clocks[i]!.t <= heard); i++) {
    const { t, wall } = clocks[i]!
    const begin = i === first ? requested : t
    const end = Math.min(clocks[i + 1]?.t ?? heard, heard)
    const at = t + said - wall
    if (at >= begin - TOLERANCE && at <= end + TOLERANCE) return Math.min(Math.max(at, requested), heard)
  }
  return undefined
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

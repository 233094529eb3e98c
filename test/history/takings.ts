/**
 * A taking is an event that takes holds away from their holders: a loss of data, a deleted key, a forced release, a
 * failover that lost the last writes, or a server's clock that stepped forward past the end of the lease. After a
 * taking, the old holder and the next holder may both rely on the lock for a moment. This is documented, so the check
 * does not report it: for the check, a hold that was taken away ends at its taking. All other overlaps are reported.
 *
 * A taking affects every hold that Redis issued before it, even if the process learned of the hold only later. The
 * token tells when Redis issued the hold, because a token is the server's time, in µs. But after the server's clock has
 * been set back, new tokens are ahead of the clock. Then it is only known that Redis issued the hold after the request
 * for the lock.
 *
 * If a server of a quorum loses its data, clients ignore this server until every earlier hold has ended. So a holder
 * may be notified before its deadline, but no other caller gets the lock early. Such a taking is marked `closed`. It
 * excuses that the hold was lost early, but it excuses no overlap.
 *
 * At a failover, a taking is recorded for each process, because the old master may still grant locks to a process until
 * that process reaches the new master. Grants after that are not excused.
 */
import type { EventOf } from './events.ts'
import { groupBy, lowerBound } from './lists.ts'

/**
 * The tolerance for comparing times of the server with times of processes, in ms. Server and processes share the
 * machine's clock, but they read it at different moments.
 */
export const TOLERANCE = 50

interface Cut {
  readonly until: number
  /**
   * `until` is when this taking ended. `earliest` is the earliest beginning of this taking and of all takings that
   * ended later.
   */
  readonly earliest: number
}

type Cuts = ReadonlyMap<string, Cut[]>

/** Takings, grouped by what they took: all holds, the holds of one key, or the holds of one process. */
class Losses {
  readonly #ofAll: Cut[]
  readonly #ofKey: Cuts
  readonly #ofWorker: Cuts

  constructor(taken: readonly EventOf<'taken'>[]) {
    this.#ofAll = cuts(taken.filter(({ key, worker }) => key === undefined && worker === undefined))
    this.#ofKey = cutsOf(taken, ({ key }) => key)
    this.#ofWorker = cutsOf(taken, ({ worker }) => worker)
  }

  /**
   * Returns the beginning of the earliest taking that may have taken away a hold of this key and process that was
   * issued at the time `issued`. Returns infinity if there was none.
   */
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
   * If the hold was taken away, returns the earliest time at which another caller may have got the lock. Otherwise
   * returns infinity. `requested` is the time at which the caller requested the lock.
   */
  cut(grant: EventOf<'grant'>, requested = grant.t): number {
    return this.#opening.of(grant, this.issued(grant, requested) - TOLERANCE)
  }

  /**
   * Returns the earliest time at which the holder may be notified that its hold was taken away. Unlike `cut`, this
   * counts `closed` takings too, after which no other caller gets the lock early.
   */
  told(grant: EventOf<'grant'>, requested = grant.t): number {
    return this.#all.of(grant, this.issued(grant, requested) - TOLERANCE)
  }

  /** Whether the lock of this key was taken away from its holder between the two times. */
  of(key: string, from: number, to: number): boolean {
    return this.#taken.some(event => event.key === key && event.t >= from && event.from <= to)
  }

  /**
   * Returns when Redis issued the hold, as a monotonic time. A token is a time of the server's clock. So the hold was
   * issued when the server's clock showed this time, between the request and the arrival of the grant. In a quorum, the
   * clocks of several servers may have shown it at different moments. Then the earliest of these moments is returned,
   * because more takings come after it, so more overlaps are excused. If no clock showed the token's time between the
   * request and the grant, the token was ahead of the clock, or belongs to an earlier hold. Then the time of the
   * request is returned.
   */
  issued(grant: EventOf<'grant'>, requested: number): number {
    const said = this.#clocks.flatMap(clocks => saidBy(clocks, grant, requested) ?? [])
    return said.length > 0 ? Math.min(...said) : Math.min(requested, grant.t)
  }
}

/**
 * A token is a time of the server's clock. Returns the monotonic time at which the server's clock showed the token, as
 * computed from `clocks`, the readings of this clock. Returns undefined if that time is not between the request and the
 * arrival of the grant.
 */
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

/**
 * Holds that were taken away from outside. The causes are a loss of data, a deleted key, a forced release, a failover
 * that lost the last writes, and a server's clock that stepped forward past the end of the lease. Each such event is a
 * taking. After a taking, the old holder and the next holder may both rely on the lock for a moment. This is
 * documented. I1 applies before the taking, and between all other holds. So for the check, a hold that was taken away
 * ends at its taking. Nothing else is excused.
 *
 * A taking affects the holds that Redis had issued before it, even if their processes learned of these holds only
 * later. A token is the server's time, in µs, at which it was issued. But a server whose clock has been set back issues
 * tokens that are ahead of its clock. Such a token was issued at an unknown time after its request.
 *
 * Servers of a quorum that come back empty do not count until every earlier hold has ended. So a holder may be notified
 * before its deadline, but no other caller gets the lock early. Such a taking is `closed`, and excuses only the early
 * loss.
 *
 * At a failover, a taking is recorded for each process. The old master grants locks to a process until that process
 * reaches the new master. Later grants to this process have no excuse.
 */
import type { EventOf } from './events.ts'
import { groupBy, lowerBound } from './lists.ts'

/**
 * The tolerance for comparing times of the server with times of processes, in ms. Server and processes share the
 * machine's clock, but they read it at different moments.
 */
const TOLERANCE = 50

interface Cut {
  readonly until: number
  /** The earliest beginning among this taking and all later ones. */
  readonly earliest: number
}

type Cuts = ReadonlyMap<string, Cut[]>

/** Takings, arranged by the holds that they concern. */
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
   * Returns the beginning of the earliest taking that may have affected a hold issued at this time. The result is
   * infinite if there was no such taking.
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
   * Returns the earliest time from which another caller may get the lock because the hold was taken away. The result is
   * infinite if the hold was never taken away. `requested` is the time of the hold's request.
   */
  cut(grant: EventOf<'grant'>, requested = grant.t): number {
    return this.#opening.of(grant, this.#issued(grant, requested) - TOLERANCE)
  }

  /**
   * Returns the earliest time at which the holder may be notified that the hold was taken away. At that time, other
   * callers may still be kept out.
   */
  told(grant: EventOf<'grant'>, requested = grant.t): number {
    return this.#all.of(grant, this.#issued(grant, requested) - TOLERANCE)
  }

  /** Whether the lock of this key was taken away from its holder between the two times. */
  of(key: string, from: number, to: number): boolean {
    return this.#taken.some(event => event.key === key && event.t >= from && event.from <= to)
  }

  /**
   * Returns the monotonic time at which Redis issued the token. At that moment, which was between the request and the
   * arrival of the grant, the server's clock showed the token's time. If no clock showed the token's time in this
   * interval, the token was ahead of the clock or belongs to an earlier hold, and the result is the time of the
   * request. In a quorum, several clocks may have shown the token's time, at different moments. The result is then the
   * earliest moment, because it excuses most.
   */
  #issued(grant: EventOf<'grant'>, requested: number): number {
    const said = this.#clocks.flatMap(clocks => saidBy(clocks, grant, requested) ?? [])
    return said.length > 0 ? Math.min(...said) : Math.min(requested, grant.t)
  }
}

/**
 * Returns the monotonic time at which this clock showed the token's time. Undefined if it did not show that time
 * between the request and the grant.
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

/**
 * The events of a run, arranged for the checks. An attempt is a request with its grant and its end. A hold is a grant
 * with the time in which its process relied on it. A taking is an event that took holds away from their holders, for
 * example a forced release.
 */
import { Disturbances } from './disturbances.ts'
import type { EventOf, HistoryEvent, Kind } from './events.ts'
import { groupBy } from './lists.ts'
import { Takings } from './takings.ts'
import type { Wants } from './wants.ts'

export interface Hold {
  readonly grant: EventOf<'grant'>
  readonly request: EventOf<'request'> | undefined
  /** What the caller asked for; undefined for a mutex. */
  readonly wants: Wants | undefined
  /** The time until which the process certainly relied on the hold. */
  readonly end: number
  /** The hold's last deadline, as far as the process recorded it. */
  readonly deadline: number
  readonly release: EventOf<'release'> | undefined
  readonly released: EventOf<'released'> | undefined
  readonly lost: EventOf<'lost'> | undefined
  /**
   * Whether the process learned of the hold from a forged message, which had the waiter's true id and the hold's token.
   */
  readonly forged: boolean
}

export interface Attempt {
  readonly request: EventOf<'request'>
  readonly hold: Hold | undefined
  readonly end: EventOf<'end'> | undefined
  /**
   * The time at which the promise settled. It is infinite if the promise never settled, or if the process was killed
   * first.
   */
  readonly settled: number
}

/** A waiter that was seen in a queue. */
export interface Waiter {
  readonly hold: Hold | undefined
  readonly attempt: Attempt | undefined
}

export interface Violation {
  readonly invariant: string
  readonly key: string | undefined
  readonly text: string
  readonly events: readonly HistoryEvent[]
}

export class History {
  readonly events: readonly HistoryEvent[]
  readonly attempts: readonly Attempt[]
  /** Holds by key, in the order of their grants. Forged grants are left out, because Redis has not made them. */
  readonly holds: ReadonlyMap<string, readonly Hold[]>
  readonly holdById: ReadonlyMap<string, Hold>
  /** Tokens of forged grants, as "<token> <key>", whether or not they were believed. */
  readonly forgedTokens: ReadonlySet<string>
  readonly takings: Takings
  readonly disturbances: Disturbances
  /** The time at which each killed process was killed. */
  readonly deaths: ReadonlyMap<string, number>
  readonly terms: EventOf<'run'>
  readonly #byOwner = new Map<string, Attempt>()

  constructor(events: Iterable<HistoryEvent>) {
    this.events = [...events].sort((a, b) => a.t - b.t)
    this.terms = this.all('run')[0] ?? { t: 0, kind: 'run', seed: 0, waiterTtl: 0, longestLease: 0, outageTimeout: 0 }
    this.deaths = new Map(this.all('died').map(({ worker, t }) => [worker, t]))
    this.takings = new Takings(this.all('taken'), this.all('clock'))
    this.disturbances = new Disturbances(this.events, this.terms)
    this.forgedTokens = new Set(this.all('forged').map(({ token, key }) => `${token} ${key}`))
    const holds = this.#holds()
    this.holdById = new Map(holds.map(hold => [hold.grant.id, hold]))
    this.holds = groupBy(
      holds.filter(({ forged }) => !forged),
      hold => hold.grant.key,
    )
    this.attempts = this.#attempts(holds)
    for (const attempt of this.attempts) if (attempt.request.owner) this.#byOwner.set(attempt.request.owner, attempt)
  }

  /**
   * Returns the waiter with this id or owner. An owner identifies a waiter only if no other call has the same owner.
   */
  waiter(id: string, owner: string): Waiter {
    return { hold: this.holdById.get(id), attempt: this.#byOwner.get(owner) }
  }

  all<K extends Kind>(kind: K): EventOf<K>[] {
    return this.events.filter(event => event.kind === kind) as EventOf<K>[]
  }

  #holds(): Hold[] {
    const requests = new Map(this.all('request').map(event => [event.attempt, event]))
    const releases = new Map(this.all('release').map(event => [event.id, event]))
    const answers = new Map(this.all('released').map(event => [event.id, event]))
    const losses = new Map(this.all('lost').map(event => [event.id, event]))
    const forged = new Set(this.all('forged').map(({ id, token }) => `${id} ${token}`))
    const deadlines = new Map<string, number>()
    for (const { id, deadline } of this.all('renewed')) {
      deadlines.set(id, Math.max(deadline, deadlines.get(id) ?? 0))
    }
    return this.all('grant').map(grant => {
      const release = releases.get(grant.id)
      const lost = losses.get(grant.id)
      const deadline = Math.max(grant.deadline, deadlines.get(grant.id) ?? 0)
      return {
        grant,
        request: requests.get(grant.attempt),
        wants: requests.get(grant.attempt)?.wants,
        end: endOf(grant, deadline, release, lost),
        deadline,
        release,
        released: answers.get(grant.id),
        lost,
        forged: forged.has(`${grant.id} ${grant.token}`),
      }
    })
  }

  #attempts(holds: readonly Hold[]): Attempt[] {
    const granted = new Map(holds.map(hold => [hold.grant.attempt, hold]))
    const ends = new Map(this.all('end').map(event => [event.attempt, event]))
    return this.all('request').map(request => {
      const hold = granted.get(request.attempt)
      const end = ends.get(request.attempt)
      return { request, hold, end, settled: hold?.grant.t ?? end?.t ?? Number.POSITIVE_INFINITY }
    })
  }
}

/**
 * Returns the time at which a hold ended. If the lease was `held` when its release was called, the hold ended with this
 * call, even if the history lacks the renewal that prolonged it. Otherwise, the hold ended at the earliest of three
 * times: when its release was called, when its loss was noticed, and at its last known deadline. A hold does not end
 * when its process dies, because other callers are kept out until the last deadline that the process knew.
 */
function endOf(
  grant: EventOf<'grant'>,
  deadline: number,
  release: EventOf<'release'> | undefined,
  lost: EventOf<'lost'> | undefined,
): number {
  if (release?.held) return release.t
  return Math.max(grant.t, Math.min(deadline, release?.t ?? deadline, lost?.t ?? deadline))
}

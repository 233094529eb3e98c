/** Checks that every promise settles in time (I6, docs/guarantees.md), and that a free lock is granted in time (I4). */
import { type DecodedClaim, decodeWants } from '../../src/kinds/claim.ts'
import type { SimulatedClient } from './client.ts'
import {
  agreed,
  hasRoom,
  isKept,
  isReadWrite,
  isShared,
  type LockState,
  liveHolds,
  takenOf,
  writes,
} from './lock-state.ts'
import type { Net } from './network.ts'
import { type Plan, WRITES } from './plan.ts'
import { mayEnter } from './reentries.ts'

/**
 * How late a promise may settle, in ms. A timer may be up to 1 ms late, and some calls end only after two timers, one
 * after the other. The rest is a margin. A slow clock (0.1 %) is allowed for separately.
 */
const LATE = 5

/**
 * When a process continues after a stop, it first reads incoming data for this many ms. Only then do its time-outs take
 * effect (src/clock.ts).
 */
const GRACE = 50

interface Open {
  readonly what: string
  readonly client: SimulatedClient
  /** The virtual time at which the promise was registered. */
  readonly begun: number
  /**
   * The virtual time by which the promise has to settle. If the client's process was stopped in the meantime, `look`
   * may allow more time.
   */
  due: number
  /**
   * The virtual time at which the call stops waiting for an answer from Redis. If the client's process was stopped in
   * the meantime, `look` adds the time of the stops, and GRACE + LATE for each stop.
   */
  readonly patient: number
  /** How often the client's process had been stopped before the call began, and for how many ms in total. */
  readonly stops: number
  readonly stopped: number
  /** Whether the call waits for a lock. Such a call gives up if Redis stays out of reach for `outageTimeout`. */
  readonly isLock: boolean
  /** The key of the lock that the call waits for. */
  readonly waitsFor: string | undefined
  /** What the call wants of a semaphore or a read-write lock, for example '1/5': one permit of five. */
  readonly wants: string | undefined
  /** The name of the call's owner, if the call gives one. */
  readonly owner: string | undefined
  /**
   * When the client's process continues after a stop, the call does not have to settle until this many ms have passed.
   */
  readonly again: number
}

interface Terms {
  readonly limit?: number
  readonly patience?: number
  readonly waitsFor?: string | undefined
  readonly wants?: string | undefined
  readonly owner?: string | undefined
  readonly again?: number
}

const NEVER = Number.POSITIVE_INFINITY

export class Promises {
  readonly #plan: Plan
  readonly #failed: (invariant: string, what: string) => void
  readonly #open = new Set<Open>()
  /** For each key: the time since which the lock has been free although a call waits. */
  readonly #idleSince = new Map<string, { readonly time: number; readonly mark: number }>()
  /** For each call that waits although its own owner holds the lock: when it was first seen in this state. */
  readonly #outsideSince = new Map<Open, number>()

  constructor(plan: Plan, failed: (invariant: string, what: string) => void) {
    this.#plan = plan
    this.#failed = failed
  }

  /** The unsettled promises, except those of dead processes. */
  get open(): string[] {
    for (const open of this.#open) if (open.client.process.dead) this.#open.delete(open)
    return [...this.#open].map(({ what, begun }) => `${what} since ${begun.toFixed(3)}`)
  }

  /**
   * Registers a promise. `limit`: ms until the caller's own time-out. `patience`: ms for which the call waits for a
   * Redis that does not answer.
   */
  begin(
    what: string,
    client: SimulatedClient,
    now: number,
    { limit = NEVER, patience = NEVER, waitsFor, wants, owner, again = 0 }: Terms = {},
  ): Open {
    const { stops, stopped } = client.process
    const open = {
      what,
      client,
      begun: now,
      due: now + limit * 1.001 + LATE,
      patient: now + patience * 1.001 + LATE + this.#plan.slack,
      stops,
      stopped,
      isLock: what.startsWith('lock'),
      waitsFor,
      wants,
      owner,
      again,
    }
    this.#open.add(open)
    return open
  }

  /** Requires the promise to settle within `ms` from now. */
  hurry(open: Open, now: number, ms: number): void {
    open.due = Math.min(open.due, now + ms + LATE)
  }

  settle(open: Open): void {
    this.#open.delete(open)
    this.#outsideSince.delete(open)
  }

  /** Runs after each event. `now` is the event's virtual time. */
  look(now: number, nets: readonly Net[]): void {
    const { settings, slack } = this.#plan
    const outage = settings.outageTimeout * 1.001 + LATE + slack
    for (const open of this.#open) {
      const { process, outOfReach } = open.client
      if (!process.awake || process.dead) continue
      const from = Math.max(open.begun, (open.isLock ? outOfReach : undefined) ?? Number.POSITIVE_INFINITY)
      const pause = process.stopped - open.stopped + (process.stops - open.stops) * (GRACE + LATE)
      const patient = Math.min(open.patient, from + outage) + pause
      const due = Math.max(Math.min(open.due, patient), process.thawedAt + open.again * 1.001 + LATE)
      if (now > due) {
        this.#failed(
          'I6',
          `${open.what} of ${process.name}, begun at ${open.begun.toFixed(3)}, was due at ${due.toFixed(3)}`,
        )
      }
    }
    if (now >= this.#plan.calm) this.#lookForProgress(now, nets)
  }

  #lookForProgress(now: number, nets: readonly Net[]): void {
    const [{ server }] = nets as [Net]
    for (const key of this.#plan.keys) {
      const waiting = [...this.#open].filter(({ waitsFor, client }) => waitsFor === key && client.open)
      const first = waiting[0]
      const states = first && nets.map(net => net.server.lock(first.client.lockOf(key)))
      const state = states && agreed(states, server.now)
      if (!first || !state) {
        this.#idleSince.delete(key)
        continue
      }
      const held = liveHolds(state, server.now).length > 0
      const lock = first.client.lockOf(key)
      this.#lookForOutsiders(now, waiting, ({ owner, wants }) => {
        if (owner === undefined) return false
        if (isReadWrite(lock)) return mayEnter(state, owner, wants === WRITES, server.now)
        return held && state.holder?.claim.owner === owner && !isKept(state.holder.claim.id)
      })
      const shared = isShared(lock)
      if (shared ? !isEnabled(state, waiting, server.now, isReadWrite(lock)) : held) {
        this.#idleSince.delete(key)
        continue
      }
      // After a release, waiters receive a message. So they must take the lock within `prompt`, if this is shorter than
      // `bound`. When a lease lapses, they receive no message. So they have the time `bound` of the plan.
      const lapsed = shared ? state.holders.size > liveHolds(state, server.now).length : state.holder !== undefined
      const bound = lapsed ? this.#plan.bound : Math.min(this.#plan.bound, this.#plan.prompt)
      const longest = Math.min(...waiting.map(({ begun }) => begun))
      // Each grant of a semaphore changes `mark`. The remaining waiters then have the full time again, even if permits
      // are still free.
      const mark = Math.max(0, ...[...state.holders.values()].map(({ token }) => token)) + state.holders.size
      const known = this.#idleSince.get(key)
      const since = Math.max(known?.mark === mark ? known.time : now, longest, this.#plan.calm)
      this.#idleSince.set(key, { time: since, mark })
      if (now - since > bound) {
        this.#failed(
          'I4',
          `${key} has been free since ${since.toFixed(3)}, but ${first.what} of ${first.client.process.name} waits`,
        )
      }
    }
  }

  /**
   * Checks the calls that name an owner and wait although this owner already holds the lock. Such a call must re-enter
   * soon: it has as much time as a waiter has to take a free lock.
   */
  #lookForOutsiders(now: number, waiting: readonly Open[], enters: (open: Open) => boolean): void {
    const bound = Math.min(this.#plan.bound, this.#plan.prompt)
    for (const open of waiting) {
      if (!enters(open)) {
        this.#outsideSince.delete(open)
        continue
      }
      const since = Math.max(this.#outsideSince.get(open) ?? now, this.#plan.calm)
      this.#outsideSince.set(open, since)
      if (now - since > bound) {
        const { what, client, owner } = open
        this.#failed(
          'I4',
          `${owner} has held since ${since.toFixed(3)}, but its ${what} of ${client.process.name} waits`,
        )
      }
    }
  }
}

/**
 * Whether a grant to one of the waiting calls is due. If waiters are queued, a grant is due when enough permits are
 * free for the first of them. If no waiter is queued, a grant is due when the free permits are enough for each of the
 * calls alone. While a read-write lock is held and a writer is queued, no grant is due.
 */
function isEnabled(state: LockState, waiting: readonly Open[], now: number, readWrite: boolean): boolean {
  const taken = takenOf(state, now)
  const fits = (permits: number, of: number) => taken + permits <= of
  const live = state.queue.filter(({ liveUntil }) => liveUntil >= now)
  const [head] = live
  if (head && readWrite && taken > 0 && live.some(({ claim }) => writes(claim))) return false
  // In a semaphore with groups, it is known here whose turn it is only if there is room for all of them.
  const first = live.filter(({ claim }, i) => live.findIndex(each => isMate(each.claim, claim)) === i)
  const able = readWrite ? first.slice(0, 1) : first.filter(({ claim }) => hasRoom(state, claim, now))
  if (able.length > 0) return able.every(({ claim }) => fits(...claim.wants!))
  return waiting.every(({ wants }) => {
    const { permits, of, group } = decodeWants(wants!)
    const mates = live.some(({ claim }) => claim.group && claim.group.name === group?.name)
    return !mates && fits(permits, of) && hasRoom(state, { wants: [permits, of], group }, now)
  })
}

function isMate(a: DecodedClaim, b: DecodedClaim): boolean {
  return a.group?.name === b.group?.name
}

/**
 * What ends a wait early: the caller's timeout or signal, a single attempt without an answer, and an outage of Redis.
 * In all cases the caller's promise settles at once, and the waiter is removed from Redis in the background (I6).
 *
 * Silence of Redis is measured on a clock that counts only the time in which this process runs (`awake`), and the two
 * classes below are on a schedule of that clock.
 */
import type { Clock } from '../clock.ts'
import { outOfReach } from '../errors.ts'
import type { Lookup } from '../lookup.ts'
import type { Due, Schedule } from './schedule.ts'
import type { Silence, Waiter, WaiterKey } from './waiter.ts'

const NEVER = Number.POSITIVE_INFINITY

/**
 * The calls that wait with the same signal. A program often has one shutdown signal for thousands of calls. The calls
 * share one listener, because Node warns about more than ten listeners, and searches all of them to remove one.
 */
class Audience extends Set<() => void> {
  handleEvent(): void {
    for (const tell of this) tell()
  }
}

const audiences = new WeakMap<AbortSignal, Audience>()

/**
 * Calls `giveUp` after `timeout` ms, or when the signal aborts. Returns a function that cancels this, or undefined if
 * nothing limits the wait.
 */
export function limit(
  signal: AbortSignal | undefined,
  timeout: number | undefined,
  clock: Clock,
  giveUp: () => void,
): (() => void) | undefined {
  const leave = signal && onAbort(signal, giveUp)
  if (timeout === undefined || timeout === NEVER) return leave
  const timer = clock.after(timeout, giveUp)
  return () => {
    timer.cancel()
    leave?.()
  }
}

/** Calls `tell` when the signal aborts. Returns a function that cancels this. */
export function onAbort(signal: AbortSignal, tell: () => void): () => void {
  const audience = audiences.get(signal) ?? new Audience()
  if (audience.size === 0) {
    audiences.set(signal, audience)
    signal.addEventListener('abort', audience)
  }
  audience.add(tell)
  return () => {
    audience.delete(tell)
    if (audience.size === 0) signal.removeEventListener('abort', audience)
  }
}

/** How long a single attempt may go unanswered, in ms. */
const SINGLE = 1_000

/**
 * Limits the time for the answer to a single attempt, which does not wait for the end of an outage. The first attempt
 * of every other call has this time as well: a `timeout` that is over earlier ends only the waiting.
 */
export class SingleAttempts implements Due {
  slot = -1
  dueAt = NEVER
  readonly #schedule: Schedule
  readonly #limit: number
  readonly #unanswered: (waiter: Waiter, limit: number) => void
  /** The waiters that wait only for the answer to an attempt. */
  readonly #waiters = new Set<Waiter>()

  /**
   * Calls `unanswered` with each waiter whose attempt got no answer in `limit` ms: 1 s, or `patience` if that is less.
   */
  constructor(schedule: Schedule, patience: number, unanswered: (waiter: Waiter, limit: number) => void) {
    this.#schedule = schedule
    this.#limit = Math.min(SINGLE, patience)
    this.#unanswered = unanswered
  }

  asked(waiter: Waiter): void {
    this.#waiters.add(waiter)
    const end = waiter.call.begun + this.#limit
    if (end < this.dueAt) this.#schedule.set(this, end)
  }

  /** How many waiters wait only for the answer to an attempt. */
  get asking(): number {
    return this.#waiters.size
  }

  has(waiter: Waiter): boolean {
    return this.#waiters.has(waiter)
  }

  answered(waiter: Waiter): void {
    if (this.#waiters.delete(waiter) && this.#waiters.size === 0) this.#schedule.delete(this)
  }

  due(now: number): void {
    let next = NEVER
    for (const waiter of this.#waiters) {
      const end = waiter.call.begun + this.#limit
      if (end > now) next = Math.min(next, end)
      else if (this.#waiters.delete(waiter)) this.#unanswered(waiter, this.#limit)
    }
    if (next < this.dueAt) this.#schedule.set(this, next)
  }

  close(): void {
    this.#waiters.clear()
    this.#schedule.delete(this)
  }
}

/**
 * Ends waits while Redis is out of reach (I6). Redis is out of reach for every waiter while there is no connection, and
 * for the waiters of a key while it answers nothing about this key, or only "not now": neither the head of the line, which
 * asks for all of it, nor a heartbeat, nor a subscription. A wait ends when Redis has been out of reach for `patience`
 * ms, counted from the start of the outage or of the wait, whichever is later.
 */
export class Outage implements Due {
  slot = -1
  dueAt = NEVER
  readonly #keys: Pick<Lookup<WaiterKey>, 'values'>
  readonly #schedule: Schedule
  readonly #patience: number
  readonly #end: (waiter: Waiter, error: Error) => void
  #now: Silence | undefined
  /** Whether a connection has failed. False while only the first connection is still being made. */
  #known = false

  constructor(
    keys: Pick<Lookup<WaiterKey>, 'values'>,
    schedule: Schedule,
    patience: number,
    end: (waiter: Waiter, error: Error) => void,
  ) {
    this.#keys = keys
    this.#schedule = schedule
    this.#patience = patience
    this.#end = end
  }

  get error(): Error | undefined {
    return this.#now?.error
  }

  /** For how many ms Redis has been out of reach; 0 if it is within reach. */
  get length(): number {
    return this.#now ? this.#schedule.clock.now() - this.#now.since : 0
  }

  /** Why the connection has failed; undefined if it has not failed. */
  get known(): Error | undefined {
    return this.#known ? this.#now?.error : undefined
  }

  /**
   * Notes an outage, or a new reason for the outage. Returns true if the outage is new. `known` says whether a
   * connection has failed.
   */
  begin(error: Error, known: boolean): boolean {
    this.#known ||= known
    if (this.#now) {
      this.#now.error = error
      return false
    }
    this.#now = { since: this.#schedule.clock.now(), error }
    this.due(this.#now.since)
    return true
  }

  /** A waiter has come. While nobody waits, there is no timer. */
  arrived({ key, call }: Waiter): void {
    if (this.#now || key.silence) this.#wakeBy(call.begun + this.#patience)
  }

  /** No waiter is left. */
  rest(): void {
    this.#schedule.delete(this)
  }

  over(): void {
    this.#now = undefined
    this.#known = false
    for (const { silence } of this.#keys.values()) if (silence) return
    this.#schedule.delete(this)
  }

  /** A request about this key, which was sent at `since`, has failed, or got no answer yet. */
  silent(key: WaiterKey, since: number, error: Error): void {
    key.silence = { since: key.silence?.since ?? since, error }
    this.#wakeBy(this.#judge(key, this.#schedule.clock.now()))
  }

  close(): void {
    this.#now = undefined
    this.#schedule.delete(this)
  }

  due(now: number): void {
    let next = NEVER
    for (const key of this.#keys.values()) {
      if (this.#now || key.silence) next = Math.min(next, this.#judge(key, now))
    }
    this.#wakeBy(next)
  }

  #wakeBy(at: number): void {
    if (at < this.dueAt) this.#schedule.set(this, at)
  }

  /** Ends each wait for this key during which Redis has been out of reach for `patience` ms. Returns when to check again. */
  #judge(key: WaiterKey, now: number): number {
    let next = NEVER
    for (const waiter of [...key.line, ...key.queue]) {
      const since = Math.min(this.#now?.since ?? NEVER, key.silence?.since ?? NEVER)
      const end = Math.max(waiter.call.begun, since) + this.#patience
      if (end > now) next = Math.min(next, end)
      else this.#end(waiter, outOfReach((this.#now ?? key.silence)?.error as Error).of(key.key))
    }
    return next
  }
}

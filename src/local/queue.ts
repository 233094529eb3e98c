/**
 * The fair waiters of one key, in this client. Redis keeps the order of the waiters, so this client only keeps a set.
 * The waiters need a heartbeat (`tend`), which keeps their places in Redis and finds grants whose messages were lost.
 * Like local-lock.ts, this file has no I/O and no timer.
 */
import type { Granted, Holder, Refused, Tended } from '../kind.ts'
import type { WaiterRecord } from './waiter.ts'

/** The lock to which the queue belongs. */
export interface QueueOwner {
  /** Sends a heartbeat of these waiters, and calls `tended` with the answer. */
  tend(waiters: readonly WaiterRecord[]): void
  /** Called when a heartbeat has found a grant. */
  found(waiter: WaiterRecord, grant: Granted): void
  /**
   * Called when a heartbeat has found a waiter in the queue in Redis, although the waiter's wait has ended. A request
   * of the waiter that reached Redis a second time has put it there.
   */
  takeBack(waiter: WaiterRecord): void
  /** Passes on the newest report of who holds the lock. */
  learn(holder: Holder | undefined): void
  /** Called when it is known that this owner holds the lock, so that the owner's waiters may re-enter. */
  entered(owner: string): void
  /** Plans a check of the lock for the end of the holder's lease, in `ttl` ms. */
  lookWithin(ttl: number): void
  /** Called when the queue no longer has a heartbeat under way. */
  rested(): void
}

const nobody: ReadonlySet<WaiterRecord> = new Set()

export class Queue {
  /** Whether a heartbeat is under way. */
  tending = false
  readonly #owner: QueueOwner
  /** The fair waiters. The set is created when the first of them joins. */
  #waiters: Set<WaiterRecord> | undefined
  /** Whether another heartbeat must follow the one under way, because `look` was called in the meantime. */
  #again = false

  constructor(owner: QueueOwner) {
    this.#owner = owner
  }

  get waiters(): ReadonlySet<WaiterRecord> {
    return this.#waiters ?? nobody
  }

  get size(): number {
    return this.#waiters?.size ?? 0
  }

  add(waiter: WaiterRecord): void {
    this.#waiters ??= new Set()
    this.#waiters.add(waiter)
  }

  leave(waiter: WaiterRecord): void {
    this.#waiters?.delete(waiter)
  }

  /**
   * Sends a heartbeat, which reads the lock's state. If a heartbeat is under way already, the new one is sent when that
   * one is answered.
   */
  look(): void {
    if (this.tending) this.#again = true
    else if (this.size > 0) this.#tend()
  }

  /** Applies the answer to the heartbeat of these waiters; `answer` is undefined if the heartbeat failed. */
  tended(waiters: readonly WaiterRecord[], answer: Tended | undefined): void {
    if (answer) this.#learn(waiters, answer)
    this.tending = false
    const again = this.#again && this.size > 0
    this.#again = false
    if (again) this.#tend()
    else this.#owner.rested()
  }

  #tend(): void {
    const waiters = [...this.waiters].filter(waiter => waiter.place?.is === 'queued')
    if (waiters.length === 0) return
    this.tending = true
    this.#owner.tend(waiters)
  }

  #learn(waiters: readonly WaiterRecord[], { sent, ttl, holder, owner, clock, waiters: places }: Tended): void {
    this.#owner.learn(holder)
    const owners = new Set(owner === undefined ? [] : [owner])
    for (const [i, place] of places.entries()) {
      const waiter = waiters[i] as WaiterRecord
      if (typeof place !== 'number') this.#owner.found(waiter, place)
      else if (!waiter.waits) this.#owner.takeBack(waiter)
      else {
        waiter.seen = sent
        const position = Math.abs(place)
        waiter.refusal = { ...(waiter.refusal as Refused), sent, ttl, position, holder, owner, clock }
        if (place < 0) owners.add(waiter.claim.owner)
      }
    }
    for (const each of owners) this.#owner.entered(each)
    this.#owner.lookWithin(ttl)
  }
}

/**
 * The locks of one kind in a client, by their keys. This file also keeps the waiters and holds of these locks, by their
 * ids, because messages name waiters and holds by id.
 */
import type { Granted } from '../kind.ts'
import type { Common, HoldEffects, Looking, Sending, WaitEffects } from './effects.ts'
import type { Hold } from './hold.ts'
import type { TurnTaking } from './line.ts'
import { LocalLock } from './local-lock.ts'
import type { WaiterRecord } from './waiter.ts'

export class LocalLocks implements Common {
  readonly shared: boolean
  readonly turns: TurnTaking
  readonly patience: number
  closed = false
  requests!: Sending
  heartbeat!: Looking
  waitEffects!: WaitEffects
  holdEffects!: HoldEffects
  /** Locks with waiters or holds in this client. */
  readonly #locks = new Map<string, LocalLock>()
  readonly #waiters = new Map<string, WaiterRecord>()
  /** This client's holds, by their ids. */
  readonly #holds = new Map<string, Hold>()

  /** `patience`: for how many ms a waiter keeps trying while replicas do not confirm its grants. */
  constructor(turns: TurnTaking, patience: number, shared: boolean) {
    this.shared = shared
    this.turns = turns
    this.patience = patience
  }

  /** Returns the lock of this key; undefined if the lock has no waiters and no holds in this client. */
  get(key: string): LocalLock | undefined {
    return this.#locks.get(key)
  }

  of(key: string): LocalLock {
    let lock = this.#locks.get(key)
    if (!lock) {
      lock = new LocalLock(key, this)
      this.#locks.set(key, lock)
    }
    return lock
  }

  get all(): Iterable<LocalLock> {
    return this.#locks.values()
  }

  forget(lock: LocalLock): void {
    if (this.#locks.get(lock.key) === lock) this.#locks.delete(lock.key)
  }

  // Methods about waiters.

  /** Returns the waiter with this id, while it waits. */
  waiter(id: string): WaiterRecord | undefined {
    return this.#waiters.get(id)
  }

  /** All waiters, including single attempts. */
  get waiters(): WaiterRecord[] {
    return [...this.#waiters.values()]
  }

  /** How many waiters are in lines and queues. */
  get waiting(): number {
    let waiting = 0
    for (const lock of this.#locks.values()) waiting += lock.waiting
    return waiting
  }

  arrive(waiter: WaiterRecord): LocalLock {
    const { key, id } = waiter.claim
    this.#waiters.set(id, waiter)
    const lock = this.of(key)
    lock.arrive()
    return lock
  }

  settled(waiter: WaiterRecord): void {
    this.#waiters.delete(waiter.claim.id)
  }

  // Methods about holds.

  get holding(): number {
    return this.#holds.size
  }

  /** All holds, oldest first. */
  get holds(): Hold[] {
    return [...this.#holds.values()]
  }

  /** Returns the hold that Redis knows by this id. */
  hold(id: string): Hold | undefined {
    return this.#holds.get(id)
  }

  /**
   * Returns whether this hold still lasts. After a hand-off, the next hold has the same id in Redis, but is another
   * hold.
   */
  has(hold: Hold): boolean {
    return this.#holds.get(hold.name.id) === hold
  }

  addHold(hold: Hold): void {
    this.#holds.set(hold.name.id, hold)
    this.of(hold.key).tenancy.add(hold)
  }

  dropHold(hold: Hold): void {
    this.#holds.delete(hold.name.id)
    this.#locks.get(hold.key)?.dropHold(hold)
  }

  // Methods that receive reports about releases.

  /**
   * Called after a release by this client. `heard`: how many clients, including this one, received the message that the
   * lock is free.
   */
  released(key: string, heard: number): void {
    const others = this.turns.released(key, heard)
    this.get(key)?.released(others)
  }

  /**
   * Called when the reply to this client's own release grants the lock to a waiter. Returns false if no waiter has that
   * id.
   */
  grantedByReply(id: string, grant: Granted): boolean {
    const waiter = this.#waiters.get(id)
    if (waiter) this.of(waiter.claim.key).found(waiter, grant)
    return waiter !== undefined
  }
}

/** What a client has of all its locks, by key; and its waiters and holds by id, which is how messages and replies name them. */
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
  /** Those that somebody waits for, or holds. */
  readonly #locks = new Map<string, LocalLock>()
  readonly #waiters = new Map<string, WaiterRecord>()
  /** By the id that Redis knows. */
  readonly #holds = new Map<string, Hold>()

  /** `patience`: for how long a waiter whose grants are not confirmed goes on, in ms. */
  constructor(turns: TurnTaking, patience: number, shared: boolean) {
    this.shared = shared
    this.turns = turns
    this.patience = patience
  }

  /** Where nobody waits for it nor holds it, undefined. */
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

  // Waiters.

  /** The waiter with this id, while it waits. */
  waiter(id: string): WaiterRecord | undefined {
    return this.#waiters.get(id)
  }

  /** All who wait, single attempts too. */
  get waiters(): WaiterRecord[] {
    return [...this.#waiters.values()]
  }

  /** Waiters parked or on their way. */
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

  // Holds.

  /** How many there are. */
  get holding(): number {
    return this.#holds.size
  }

  /** Oldest first. */
  get holds(): Hold[] {
    return [...this.#holds.values()]
  }

  /** The hold that Redis knows by this id. */
  hold(id: string): Hold | undefined {
    return this.#holds.get(id)
  }

  /** False: it has ended, though another hold may have followed it by the same name. */
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

  // News of releases.

  /** This client has released the lock, and so many clients were told, this one included if it listens. */
  released(key: string, heard: number): void {
    const others = this.turns.released(key, heard)
    this.get(key)?.released(others)
  }

  /** A grant by the reply of this client's own release. False: no waiter has that id any more. */
  grantedByReply(id: string, grant: Granted): boolean {
    const waiter = this.#waiters.get(id)
    if (waiter) this.of(waiter.claim.key).found(waiter, grant)
    return waiter !== undefined
  }
}

/** The keys of one kind of lock that a client uses, and the waiters and holds of all its kinds by their ids. */
import type { Announced } from '../kind.ts'
import { Lookup } from '../lookup.ts'
import { Hold } from './hold.ts'
import { Key } from './key.ts'
import { KeyHolds } from './key-holds.ts'
import type { HandOffPort, Port } from './port.ts'
import type { Schedule } from './schedule.ts'
import { Waiter } from './waiter.ts'

/**
 * Each waiter, and later its hold, under the id by which messages name it. After a hand-off within the client, the hold
 * has the id of the first hold of its run, because Redis knows it by that id.
 */
export type Named = Lookup<Waiter | Hold>

export class Table {
  /** Keys with waiters or holds in this client. */
  readonly keys = new Lookup<Key>()
  /** How many waiters, including single attempts, and how many holds of this kind there are. */
  waiters = 0
  holds = 0
  port!: Port
  handOffs!: HandOffPort
  readonly #named: Named
  readonly #agenda: Schedule

  constructor(named: Named, agenda: Schedule) {
    this.#named = named
    this.#agenda = agenda
  }

  of(key: string): Key {
    let state = this.keys.get(key)
    if (!state) {
      state = new Key(key, new KeyHolds(), this.port, this.handOffs, this.#agenda)
      this.keys.set(key, state)
    }
    return state
  }

  addWaiter(waiter: Waiter): void {
    this.#named.set(waiter.claim.id, waiter)
    this.waiters += 1
  }

  dropWaiter(waiter: Waiter): void {
    this.#named.delete(waiter.claim.id)
    this.waiters -= 1
  }

  addHold(hold: Hold): void {
    this.#named.set(hold.name.id, hold)
    this.holds += 1
  }

  /** Returns false if the hold has been dropped before, or if its lock was handed on: then another hold has its id. */
  dropHold(hold: Hold): boolean {
    if (!this.lives(hold)) return false
    this.holds -= 1
    return this.#named.delete(hold.name.id)
  }

  /** Whether the hold has not ended. */
  lives(hold: Hold): boolean {
    return this.#named.get(hold.name.id) === hold
  }

  /**
   * This client's release, or a message, announces a grant. Its waiter may have learned of the same grant before, by the
   * answer to a request of its own. Returns false if nobody wants the grant.
   */
  granted(id: string, grant: Announced, now: number): boolean {
    return this.#named.get(id)?.granted(grant, now) ?? false
  }

  hold(id: string): Hold | undefined {
    const named = this.#named.get(id)
    return named instanceof Hold ? named : undefined
  }

  /** The waiters, in the order of their calls. */
  get allWaiters(): Waiter[] {
    // A client that closes asks at the end of each hold, and may have thousands.
    if (this.waiters === 0) return []
    const ours = (named: Waiter | Hold): named is Waiter =>
      named instanceof Waiter && this.keys.get(named.claim.key) === named.key
    return this.#named
      .values()
      .filter(ours)
      .sort((a, b) => a.since - b.since)
  }

  /** The holds, oldest first. */
  get allHolds(): Hold[] {
    const ours = (named: Waiter | Hold): named is Hold => named instanceof Hold && this.keys.get(named.key) === named.of
    return this.#named
      .values()
      .filter(ours)
      .sort((a, b) => a.number - b.number)
  }

  /** How many waiters are in lines and queues. */
  get waiting(): number {
    let waiting = 0
    for (const key of this.keys.values()) waiting += key.waiting
    return waiting
  }
}

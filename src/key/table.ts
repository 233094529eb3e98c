/**
 * The keys of one kind of lock that a client uses, and its waiters and holds by their ids, because messages name waiters
 * and holds by id.
 */
import { Lookup } from '../lookup.ts'
import type { Hold } from './hold.ts'
import { KeyState } from './key-state.ts'
import type { Port, Succession } from './port.ts'
import type { Schedule } from './schedule.ts'
import type { Waiter } from './waiter.ts'

export class Table {
  /** Keys with waiters or holds in this client. */
  readonly states = new Lookup<KeyState>()
  /** All waiters, including single attempts, by their ids. */
  readonly waiters = new Lookup<Waiter>()
  /** The holds, by the ids by which Redis knows them. */
  readonly holds = new Lookup<Hold>()
  port!: Port
  succession!: Succession
  readonly #agenda: Schedule

  constructor(agenda: Schedule) {
    this.#agenda = agenda
  }

  of(key: string): KeyState {
    let state = this.states.get(key)
    if (!state) {
      state = new KeyState(key, this.port, this.succession, this.#agenda)
      this.states.set(key, state)
    }
    return state
  }

  /** How many waiters are in lines and queues. */
  get waiting(): number {
    let waiting = 0
    for (const state of this.states.values()) waiting += state.waiting
    return waiting
  }
}

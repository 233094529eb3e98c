/** The kinds of lock that several owners may hold at a time: the semaphore, and the sides of the read-write lock. */
import type { Parts, Traits } from '../../kind.ts'
import { QueuedKind } from '../queued-kind.ts'
import type { PermitsScripts } from '../scripts.ts'
import type { LockState } from '../state.ts'
import { PermitsInspection } from './inspection.ts'

export class Permits extends QueuedKind {
  // The lock is not handed on within the client. In a semaphore, the next waiter may want more or fewer permits than the
  // holder. In a read-write lock, readers that could be admitted would have to wait until the hand-offs end.
  protected readonly block = 0
  readonly inspection: PermitsInspection

  constructor(parts: Parts<PermitsScripts>, traits: Traits<LockState>) {
    super(parts, traits)
    this.inspection = new PermitsInspection(parts, traits.stateOf, key => this.sweep(key))
  }
}

/** The semaphore: several owners hold permits of it at a time, as many as it has. */
import type { KindDefinition, Parts } from '../../kind.ts'
import { QueuedKind } from '../queued-kind.ts'
import type { LockState } from '../state.ts'
import { PermitsInspection, stateOfSemaphore } from './inspection.ts'
import { namesOf, type PermitsNames } from './names.ts'
import { scripts } from './semaphore/scripts.generated.ts'

export class Semaphore extends QueuedKind {
  readonly shared = true
  readonly reentrant = false
  readonly inTurns = false
  // Whoever waits may want another number of permits, so nothing is handed on within the client.
  protected readonly block = 0
  readonly handOff = undefined
  readonly inspection: PermitsInspection

  constructor(parts: Parts<typeof scripts, PermitsNames>) {
    super(parts)
    this.inspection = new PermitsInspection(parts, stateOfSemaphore, key => this.sweep(key))
  }
}

export const semaphore: KindDefinition<LockState, typeof scripts, PermitsNames> = {
  name: 'semaphore',
  namesOf,
  scripts,
  make: parts => new Semaphore(parts),
}

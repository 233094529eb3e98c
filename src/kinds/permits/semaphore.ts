/** The semaphore. It has a number of permits, and several owners may hold some of them at a time. */
import { LockError } from '../../errors.ts'
import type { KindDefinition, Traits } from '../../kind.ts'
import type { LockState } from '../state.ts'
import { stateOfSemaphore } from './inspection.ts'
import { namesOf, type PermitsNames } from './names.ts'
import { Permits } from './permits.ts'
import { scripts } from './semaphore/scripts.generated.ts'

const traits: Traits<LockState> = {
  noun: 'semaphore',
  shared: true,
  reentrant: false,
  stateOf: stateOfSemaphore,
  heldBy({ taken }, { wants }) {
    if (!taken) return undefined
    const [permits, holds] = taken
    return `${permits} of ${wants?.split('/')[1]} permits are taken by${holds > 1 ? ` ${holds} holders, the first is` : ''}`
  },
  // Different numbers are allowed: each call is limited only by the number that it gives, so a deployment can raise the
  // number while old clients still run. But different numbers may also be a mistake.
  differs({ key, wants }, among, label) {
    const numbers = `this call sets permits to ${wants?.split('/')[1]}, but the holder ${label} set it to ${among}`
    return new LockError(
      'ERR_LOCK_PERMITS',
      `semaphore "${key}": ${numbers}; pass the same number in all calls, because each call is limited only by its own number`,
      key,
    )
  },
}

export const semaphore: KindDefinition<LockState, typeof scripts, PermitsNames> = {
  name: 'semaphore',
  traits,
  namesOf,
  scripts,
  make: parts => new Permits(parts, traits),
}

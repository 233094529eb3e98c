/** The semaphore. It has a number of permits, and several owners may hold some of them at a time. */
import { LockError } from '../../errors.ts'
import type { KindDefinition, Traits } from '../../kind.ts'
import { waitFor } from '../expected.ts'
import type { LockState } from '../state.ts'
import { stateOfSemaphore } from './inspection.ts'
import { namesOf, type PermitsNames } from './names.ts'
import { Permits } from './permits.ts'
import { scripts } from './semaphore/scripts.generated.ts'

/** Reads how many permits a claim wants, and how many the semaphore has. */
function wantsOf(text = '1/1'): [permits: number, of: number] {
  const [permits = '1', of = '1'] = text.split('/')
  return [Number(permits), Number.parseInt(of, 10)]
}

const traits: Traits<LockState> = {
  noun: 'semaphore',
  shared: true,
  reentrant: false,
  expects({ position, age }, { hold }, text) {
    const [wants, of] = wantsOf(text)
    return waitFor(position, hold / of, hold / wants, age)
  },
  stateOf: (key, found) => stateOfSemaphore(key, found, traits.expects),
  heldBy({ taken }, { wants }) {
    if (!taken) return undefined
    const [permits, holds] = taken
    return `${permits} of ${wantsOf(wants)[1]} permits are taken by${holds > 1 ? ` ${holds} holders, the first is` : ''}`
  },
  // Different numbers are allowed: each call is limited only by the number that it gives, so a deployment can raise the
  // number while old clients still run. But different numbers may also be a mistake.
  differs({ key, wants }, among, label) {
    const numbers = `this call sets permits to ${wantsOf(wants)[1]}, but the holder ${label} set it to ${among}`
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

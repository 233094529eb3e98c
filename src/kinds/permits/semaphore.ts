/** The semaphore. It has a number of permits, and several owners may hold some of them at a time. */
import { LockError } from '../../errors.ts'
import type { Claim, Holder, KindDefinition, Parts } from '../../kind.ts'
import { QueuedKind } from '../queued-kind.ts'
import type { LockState } from '../state.ts'
import { PermitsInspection, stateOfSemaphore } from './inspection.ts'
import { namesOf, type PermitsNames } from './names.ts'
import { scripts } from './semaphore/scripts.generated.ts'

/** A client warns about at most this many semaphores. */
const MOST_WARNED = 1_000

export class Semaphore extends QueuedKind {
  override readonly noun = 'semaphore'
  readonly shared = true
  readonly reentrant = false
  readonly inTurns = false
  // The lock is not handed on within the client, because the next waiter may want more or fewer permits than the
  // holder.
  protected readonly block = 0
  readonly inspection: PermitsInspection
  readonly #warn: (error: LockError) => void
  readonly #warned = new Set<string>()

  constructor(parts: Parts<typeof scripts, PermitsNames>) {
    super(parts)
    this.#warn = parts.warn
    this.inspection = new PermitsInspection(parts, stateOfSemaphore, key => this.sweep(key))
  }

  heldBy({ taken }: Holder, { wants }: Claim): string | undefined {
    if (!taken) return undefined
    const [permits, holds] = taken
    return `${permits} of ${wants?.split('/')[1]} permits are taken by${holds > 1 ? ` ${holds} holders, the first is` : ''}`
  }

  /**
   * Warns that this call and a holder's call give different numbers of permits for the semaphore. This is allowed: each
   * call is limited only by the number that it gives, so a deployment can raise the number while old clients still run.
   * But different numbers may also be a mistake.
   */
  protected override differs({ key, wants }: Claim, among: string, label: string): void {
    if (this.#warned.has(key) || this.#warned.size === MOST_WARNED) return
    this.#warned.add(key)
    const numbers = `this call sets permits to ${wants?.split('/')[1]}, but the holder ${label} set it to ${among}`
    this.#warn(
      new LockError(
        'ERR_LOCK_PERMITS',
        `semaphore "${key}": ${numbers}; pass the same number in all calls, because each call is limited only by its own number`,
        key,
      ),
    )
  }
}

export const semaphore: KindDefinition<LockState, typeof scripts, PermitsNames> = {
  name: 'semaphore',
  namesOf,
  scripts,
  make: parts => new Semaphore(parts),
}

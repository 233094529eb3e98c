/** Warns that callers do not agree on how many permits a lock has. */
import type { LockError } from '../errors.ts'
import type { Claim, Traits } from '../kind.ts'

/** A client warns about at most this many locks. */
const MOST_WARNED = 1_000

export class Disagreements {
  readonly #traits: Pick<Traits, 'differs'>
  readonly #warn: (error: LockError) => void
  readonly #warned = new Set<string>()

  constructor(traits: Pick<Traits, 'differs'>, warn: (error: LockError) => void) {
    this.#traits = traits
    this.#warn = warn
  }

  /**
   * Called when a claim was refused. Warns once for each lock. `among`: how many permits the lock has according to the
   * claim of a holder with this label. If the claim has a group, `;<limit>;<weight>` of earlier calls may follow.
   */
  check(claim: Claim, among: string, label: string): void {
    const { differs } = this.#traits
    if (!differs || claim.wants?.replace('s', '').endsWith(`/${among}`)) return
    if (this.#warned.has(claim.key) || this.#warned.size === MOST_WARNED) return
    const warning = differs(claim, among, label)
    if (!warning) return
    this.#warned.add(claim.key)
    this.#warn(warning)
  }
}

/**
 * Checks the hand-offs within a client, which the server does not see. The server grants a hold with a block of tokens.
 * Then the hold passes from lease to lease of the client, until one of them releases it. Such a sequence is called a
 * run.
 *
 * A run must not overtake three kinds of fair waiters: those that were queued when the run began, those of the same
 * client, and those of which the client knows. A run may last only a few ms.
 */
import type { Hold } from '../../src/key/hold.ts'
import type { SimulatedClient } from './client.ts'

/** How long a run may last, in ms: the limit of src/key/run.ts, and a margin because the client's clock may be 0.1 % slow. */
const LONGEST = 4.01

interface Run {
  readonly lock: string
  /** The token that the server granted. */
  readonly first: number
  /** The last token of the block that the server granted. */
  readonly last: number
  /** When the run's first lease began, in virtual ms. */
  begun: number | undefined
  holder: Hold | undefined
  issued: number
  /** Whether the run's client knows that a fair waiter is queued. */
  told: boolean
}

export class Runs {
  readonly #failed: (invariant: string, what: string) => void
  /** Maps each hold's id to its current run. */
  readonly #runs = new Map<string, Run>()
  /** Leases that have ended by a hand-off within the client. */
  readonly #passed = new Set<string>()
  /** How many leases began by a hand-off within their client. */
  count = 0

  constructor(failed: (invariant: string, what: string) => void) {
    this.#failed = failed
  }

  granted(hold: string, lock: string, token: number, lastToken: number): void {
    this.#runs.set(hold, {
      lock,
      first: token,
      last: lastToken,
      begun: undefined,
      holder: undefined,
      issued: token,
      told: false,
    })
  }

  /** Records that the client has learned that a fair waiter is queued for the lock of this hold. */
  told(hold: string): void {
    const run = this.#runs.get(hold)
    if (run) run.told = true
  }

  handedOn(hold: Hold): boolean {
    return this.#passed.has(hold.claim.id)
  }

  /** Returns the last token that the client has issued for this hold. */
  issued(hold: string): number {
    return this.#runs.get(hold)?.issued ?? 0
  }

  /** Records that a lease began by a grant of the server. */
  began(hold: Hold, now: number): void {
    const run = this.#runs.get(hold.name.id)
    if (!run || run.issued !== hold.token) return
    run.begun ??= now
    run.holder = hold
  }

  /** Records that a lease began by a hand-off within its client. `fair`: the client's own fair waiters for the key. */
  inherited(client: SimulatedClient, hold: Hold, fair: readonly string[], now: number): void {
    const { token } = hold
    const { id } = hold.claim
    const run = this.#runs.get(hold.name.id)
    this.count += 1
    if (!run?.holder || run.begun === undefined)
      return this.#failed('I1', `${id} has the lock by a hand-off from nobody`)
    const { holder } = run
    const from = holder.claim.id
    if (holder.state.is !== 'released') this.#failed('I1', `${id} has the lock from ${from}, which still holds`)
    const left = hold.remaining(client.process.now())
    if (left < hold.length / 2)
      this.#failed('I1', `${id} was handed a lease of which only ${left.toFixed(3)} ms are left`)
    if (hold.deadline > holder.deadline) {
      this.#failed('I1', `${id} has a later deadline than ${from}, from which it has the lock`)
    }
    if (token <= run.issued) this.#failed('I2', `${id} has the token ${token}, after ${run.issued}`)
    if (token > run.last) this.#failed('I2', `${id} has the token ${token}, past the last of the block, ${run.last}`)
    if (fair.length > 0) this.#failed('I3', `${client.process.name} lets ${id} overtake its own fair waiters ${fair}`)
    if (run.told)
      this.#failed('I3', `${client.process.name} knows that fair waiters are queued, but hands the lock to ${id}`)
    if (now - run.begun > LONGEST)
      this.#failed('I3', `${id} has the lock by a run that has lasted ${now - run.begun} ms`)
    this.#passed.add(from)
    run.holder = hold
    run.issued = token
  }
}

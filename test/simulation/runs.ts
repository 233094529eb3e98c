/**
 * The runs of hand-offs within one client, which the server does not see: it granted a hold, with some tokens behind its
 * own, and what becomes of that hold is between the leases of the client until one of them releases it.
 *
 * Allowed is what API.md says: a run passes no fair waiter that was there when it began, none that its client has itself
 * or was told of, and goes on for a few ms.
 */
import type { Hold } from '../../src/local/hold.ts'
import type { SimulatedClient } from './client.ts'

/** The longest run, ms, by a clock that may be 0.1 % slow: with others, and where none were known. */
const LONGEST = 4.01
const LONGEST_ALONE = 25.03

interface Run {
  readonly lock: string
  /** By the server. */
  readonly first: number
  /** Tokens that belong to it. */
  readonly last: number
  /** When its first lease was made, virtual ms. */
  begun: number | undefined
  longest: number
  holder: Hold | undefined
  issued: number
  /** Whether its client was told that a fair waiter is queued. */
  told: boolean
}

export class Runs {
  readonly #failed: (invariant: string, what: string) => void
  /** By the id of the hold. */
  readonly #runs = new Map<string, Run>()
  /** Leases that have ended by handing their lock on. */
  readonly #passed = new Set<string>()
  /** How many leases were handed on so. */
  count = 0

  constructor(failed: (invariant: string, what: string) => void) {
    this.#failed = failed
  }

  /** The server grants a hold. */
  granted(hold: string, lock: string, token: number, lastToken: number): void {
    this.#runs.set(hold, {
      lock,
      first: token,
      last: lastToken,
      begun: undefined,
      longest: LONGEST,
      holder: undefined,
      issued: token,
      told: false,
    })
  }

  /** The client was told that a fair waiter is queued for the lock of this hold. */
  told(hold: string): void {
    const run = this.#runs.get(hold)
    if (run) run.told = true
  }

  handedOn(hold: Hold): boolean {
    return this.#passed.has(hold.claim.id)
  }

  /** The last token of the hold that its client has issued. */
  issued(hold: string): number {
    return this.#runs.get(hold)?.issued ?? 0
  }

  /** A hold was made of a grant by the server. */
  began(hold: Hold, now: number, alone: boolean): void {
    const run = this.#runs.get(hold.name.id)
    if (!run || run.issued !== hold.token) return
    run.begun ??= now
    if (alone) run.longest = LONGEST_ALONE
    run.holder = hold
  }

  /** A hold was made of another one of its client. `fair`: the client's own fair waiters of its key. */
  inherited(client: SimulatedClient, hold: Hold, fair: readonly string[], now: number): void {
    const { token } = hold
    const { id } = hold.claim
    const run = this.#runs.get(hold.name.id)
    this.count += 1
    if (!run?.holder || run.begun === undefined) return this.#failed('I1', `${id} has the lock from nobody`)
    const { holder } = run
    const from = holder.claim.id
    if (holder.state.is !== 'released') this.#failed('I1', `${id} has the lock from ${from}, which holds`)
    const left = hold.remaining(client.process.now())
    if (left < hold.length / 2) this.#failed('I1', `${id} was handed a lock for ${left.toFixed(3)} ms`)
    if (hold.deadline > holder.deadline) {
      this.#failed('I1', `${id} believes to hold for longer than ${from}, from which it has the lock`)
    }
    if (token <= run.issued) this.#failed('I2', `${id} has the token ${token}, after ${run.issued}`)
    if (token > run.last) this.#failed('I2', `${id} has the token ${token}, of those up to ${run.last}`)
    if (fair.length > 0) this.#failed('I3', `${client.process.name} passes its own fair waiters ${fair} with ${id}`)
    if (run.told)
      this.#failed('I3', `${client.process.name} knows that fair waiters are queued, and goes on with ${id}`)
    if (now - run.begun > run.longest) this.#failed('I3', `${id} has the lock from a run of ${now - run.begun} ms`)
    this.#passed.add(from)
    run.holder = hold
    run.issued = token
  }
}

/**
 * Checks the invariants of a history over a quorum. No single server decides who holds a lock, so these checks compare
 * what the clients believe. A restart without data is no excuse: only a forced release may take a lock from its holder.
 */

import type { Hold, Loss } from '../../src/key/hold.ts'
import type { Lease } from '../../src/key/lease.ts'
import type { ClientWatcher, SimulatedClient } from './client.ts'
import { isHeld } from './lock-state.ts'
import type { Net } from './network.ts'
import type { Plan } from './plan.ts'
import { nobody, type Watcher } from './witness.ts'

interface Open {
  readonly hold: Hold
  readonly client: SimulatedClient
}

export class Beliefs implements ClientWatcher {
  readonly #failed: (invariant: string, what: string) => void
  /** The holds that are neither released nor lost, by the ids of their claims. */
  readonly #open = new Map<string, Open>()
  /** The holds that a forced release has ended on a server, and their owners, each with the client that did it last. */
  readonly #forced = new Map<string, string | undefined>()
  /** The holds that were lost before a forced release ended them on a server. */
  readonly #lapsed = new Set<string>()
  /** The forced releases under way. `alone`: no other one of the same key has been under way meanwhile. */
  readonly #forcing = new Set<{ readonly key: string; alone: boolean }>()
  /** For each key, the largest token of each owner. */
  readonly #tokens = new Map<string, Map<string, number>>()
  readonly counts = { handedOn: 0, reentered: 0, deadlocks: 0 }
  readonly watcher: Watcher = {
    ...nobody,
    taken: (ids, by) => {
      // Calls of the same owner may re-enter a hold that is being taken.
      for (const id of ids) this.#forced.set(this.#open.get(id)?.hold.owner ?? id, by).set(id, by)
    },
  }

  constructor(_plan: Plan, _now: () => number, failed: (invariant: string, what: string) => void) {
    this.#failed = failed
  }

  get openLeases(): number {
    return this.#open.size
  }

  /** A call with the name of its owner need not have the token of that owner's calls in other clients. */
  tookAway({ id, owner }: Lease): boolean {
    return this.#forced.has(id) || owner !== id
  }

  acquired(client: SimulatedClient, hold: Hold): void {
    const { claim, token } = hold
    const { id, key, owner } = claim
    this.#open.set(id, { hold, client })
    // The grant arrived after the end of its lease. A timer will report the loss.
    if (remaining(hold, client) === 0) return
    const tokens = this.#tokens.get(key) ?? new Map<string, number>()
    this.#tokens.set(key, tokens)
    for (const [other, last] of tokens) {
      if (other === owner) this.counts.reentered += 1
      else if (token <= last && !this.#forced.has(id) && !this.#forced.has(owner))
        this.#failed('I2', `${id} has the token ${token}, after ${last} of ${other}`)
    }
    tokens.set(owner, Math.max(token, tokens.get(owner) ?? 0))
    // A forced release came between the grant and its arrival, and its message is lost or late: until the client learns
    // of it, another caller may have the lock, as if the grant had arrived in time.
    if (this.#forced.has(id)) return
    for (const open of this.#open.values())
      if (open.hold.key === key && open.hold.owner !== owner) this.#mayEnd(open, id)
  }

  ended({ claim, state }: Hold): void {
    if (state.is === 'released') this.#open.delete(claim.id)
  }

  lost({ claim, signal }: Hold, loss: Loss): void {
    if (signal.reason !== loss) this.#failed('I8', `${claim.id} is lost and its signal has not aborted`)
    if (!this.#forced.has(claim.id)) this.#lapsed.add(claim.id)
    this.#open.delete(claim.id)
  }

  /**
   * Called when a forced release begins, and the result when it has resolved. If it reports that it has ended no hold,
   * it must not have taken one from its holder.
   */
  forcing(key: string, { process: { name } }: SimulatedClient) {
    const forcing = { key, alone: [...this.#forcing].every(other => other.key !== key) }
    for (const other of this.#forcing) if (other.key === key) other.alone = false
    this.#forcing.add(forcing)
    const before = [...this.#open].filter(([, { hold }]) => hold.key === key)
    const unforced = before.filter(([id]) => !this.#forced.has(id))
    return (done: boolean, nets: readonly Net[]) => {
      this.#forcing.delete(forcing)
      if (done || !forcing.alone) return
      for (const [id, { hold, client }] of unforced) {
        // A request of an earlier forced release may have come late.
        if (this.#forced.get(id) !== name || this.#lapsed.has(id) || client.process.dead) continue
        const lock = client.lockOf(key)
        const known = nets.filter(({ server }) => isHeld(server.lock(lock).holds, id, server.now)).length
        const { is } = hold.state
        if (is === 'lost' || (is === 'held' && remaining(hold, client) > 0 && 2 * known <= nets.length))
          this.#failed('I5', `a forced release has taken the lock from ${id}, but resolves false`)
      }
    }
  }

  know(): void {}

  told(): void {}

  released(): void {}

  abandoned(): void {}

  used(): void {}

  look(): void {
    for (const [id, { hold, client }] of this.#open) {
      const { is } = hold.state
      if (client.process.dead || is === 'released' || is === 'lost') this.#open.delete(id)
    }
  }

  #mayEnd({ hold, client }: Open, id: string): void {
    const holder = hold.claim.id
    if (client.process.dead || this.#forced.has(holder)) return
    const left = remaining(hold, client)
    if (left > 0) this.#failed('I1', `${id} has the lock, and ${holder} for another ${left.toFixed(3)} ms, too`)
    if (hold.state.is === 'held' && client.process.settled && !client.closed)
      this.#failed('I8', `${id} has the lock before the loss of ${holder} was reported`)
  }
}

function remaining(hold: Hold, { process }: SimulatedClient): number {
  return hold.remaining(process.now())
}

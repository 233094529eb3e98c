/**
 * Lets a client in a cluster notice when a lock that it holds is taken away, for example by a forced release. In a
 * cluster, each lock has its own channel for the messages about this: the lock's inbox. A client that has not
 * subscribed to the inbox notices the loss only at the next renewal, or never if the lease is not renewed (I8). So a
 * client subscribes to the inbox of each lock that it has held for longer than `LASTING`. Shorter holds cost nothing. A
 * hold that is renewed often needs no subscription, because a renewal soon notices the loss. When the subscription is
 * active, the client asks Redis once whether the hold still exists, because the loss may have come before the
 * subscription.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Hold } from './hold.ts'

/** A hold gets a subscription when it is this many ms old. */
const LASTING = 100
/** If a hold is renewed at least this often, in ms, the client need not subscribe to its lock's inbox. */
const PROMPT = 1_000
/** The interval, in ms, at which subscriptions of ended holds are dropped. */
const SWEEP = 1_000

export interface Inboxes {
  hear(key: string, channel: 'inbox'): Promise<void> | undefined
  drop(key: string, channel: 'inbox'): void
}

export class LossNews {
  readonly #clock: Clock
  readonly #inboxes: Inboxes
  readonly #doubt: (id: string) => void
  /** Holds that are younger than `LASTING`, oldest first. */
  #young: Hold[] = []
  #listening: Hold[] = []
  #timer: Timer | undefined

  /** `doubt` is called when a hold may be gone. Its argument is the id by which Redis knows that hold. */
  constructor(clock: Clock, inboxes: Inboxes, doubt: (id: string) => void) {
    this.#clock = clock
    this.#inboxes = inboxes
    this.#doubt = doubt
  }

  add(hold: Hold): void {
    if (isRenewed(hold) && hold.length / 3 <= PROMPT) return
    this.#young.push(hold)
    if (this.#young.length === 1) this.#arm(LASTING)
  }

  close(): void {
    this.#timer?.cancel()
    this.#young = []
    this.#listening = []
  }

  #arm(ms: number): void {
    this.#timer?.cancel()
    this.#timer = this.#clock.after(ms, () => this.#look())
  }

  #look(): void {
    const now = this.#clock.now()
    this.#listening = this.#listening.filter(hold => {
      if (isHeld(hold)) return true
      this.#inboxes.drop(hold.key, 'inbox')
      return false
    })
    const young = this.#young.filter(isHeld)
    const old = young.filter(hold => now - hold.since >= LASTING)
    this.#young = young.slice(old.length)
    for (const hold of old) this.#listen(hold)
    if (this.#young.length > 0) this.#arm(LASTING)
    else if (this.#listening.length > 0) this.#arm(SWEEP)
  }

  #listen(hold: Hold): void {
    this.#listening.push(hold)
    // If the subscription fails, only renewals notice a loss. `hear` returns undefined if this client is subscribed
    // already. Redis is asked in this case, too, because that subscription may have begun after the loss.
    const hearing = this.#inboxes.hear(hold.key, 'inbox') ?? Promise.resolve()
    hearing.then(
      () => this.#doubt(hold.name.id),
      () => {},
    )
  }
}

function isRenewed(hold: Hold): boolean {
  return hold.renewUntil === Number.POSITIVE_INFINITY
}

function isHeld(hold: Hold): boolean {
  return hold.state.is === 'held'
}

/**
 * In a cluster, subscribes to the inboxes of locks that this client holds, so that the client learns when a lock is
 * taken away. In a cluster, each lock has an inbox of its own. A holder without a subscription to that inbox learns of
 * the loss only at its next renewal, or never if its lease is not renewed (I8). So a client subscribes for each hold
 * that is older than `LASTING`. Shorter holds cost nothing. A hold that is renewed often learns of its loss soon
 * anyway, so it needs no subscription. After subscribing, the client asks Redis once whether the hold still exists,
 * because the loss may have come before the subscription.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Hold } from '../local/hold.ts'

/** A hold gets a subscription when it is this many ms old. */
const LASTING = 100
/** A hold that is renewed at least this often, in ms, needs no subscription. */
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

  /** `doubt` is called with the id by which Redis knows a hold, if that hold may be gone. */
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
    // If the subscription fails, only renewals notice a loss. If this client was subscribed before, its subscription
    // may still have begun after the loss. So Redis is asked in that case, too.
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

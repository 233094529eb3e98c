/** The subscriptions of a client for the waiters of its keys. */
import type { Clock } from '../clock.ts'
import { isRefusal } from '../errors.ts'
import type { Channel, Channels } from '../kind.ts'
import type { Heeded } from './port.ts'

export class Subscriptions {
  readonly channels: Channels
  readonly #clock: Clock

  constructor(channels: Channels, clock: Clock) {
    this.channels = channels
    this.#clock = clock
  }

  /**
   * Subscribes for the waiters of this key. Resolves when the subscription is active. Returns undefined if it is active
   * already. If subscribing fails, the next waiter subscribes again.
   */
  subscribe(state: Heeded, channel: Channel): Promise<void> | undefined {
    state.heard ??= {}
    const { heard, key } = state
    const known = heard[channel]
    if (known === true) {
      if (this.channels.hears(key, channel)) return undefined
      // The connection for messages was lost since this key subscribed, perhaps while it had no waiters.
      this.channels.drop(key, channel)
    } else if (known) return known
    const hearing = this.channels.hear(key, channel)
    heard[channel] = hearing ?? true
    hearing?.then(
      () => {
        if (heard[channel] === hearing) heard[channel] = true
      },
      () => {
        if (heard[channel] !== hearing) return
        heard[channel] = undefined
        this.channels.drop(key, channel)
      },
    )
    return hearing
  }

  /**
   * Subscribes, but also resolves after `limit` ms, or if the connection for messages is broken. In these cases the
   * waiter continues without messages: its requests may still reach Redis, and the lock's state is read from time to
   * time (I4). Rejects if Redis refuses the subscription.
   */
  heed(state: Heeded, channel: Channel, limit: number): Promise<void> | undefined {
    const hearing = this.subscribe(state, channel)
    if (!hearing) return undefined
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(limit, resolve)
      hearing
        .catch(error => {
          if (error.cause === undefined || isRefusal(error)) reject(error)
        })
        .then(() => {
          timer.cancel()
          resolve()
        })
    })
  }

  /** Ends the subscriptions of this key. */
  drop(state: Heeded): void {
    const { heard, key } = state
    state.heard = undefined
    for (const channel of Object.keys(heard ?? {}) as Channel[]) {
      if (heard![channel]) this.channels.drop(key, channel)
      heard![channel] = undefined
    }
  }
}

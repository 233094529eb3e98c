/**
 * The channels to which a client listens for the waiters of each lock. The client subscribes when the first waiter
 * needs a channel, and unsubscribes when the lock has no waiters left.
 */
import type { Clock } from '../clock.ts'
import { isRefusal } from '../errors.ts'
import type { Channel, Channels } from '../kind.ts'

/**
 * The client's subscription to each channel: a promise while the subscription is being made, `true` once it is active.
 */
type Heard = { [C in Channel]?: Promise<void> | true | undefined }

export class Ears {
  readonly #channels: Channels
  readonly #clock: Clock
  readonly #heard = new Map<string, Heard>()

  constructor(channels: Channels, clock: Clock) {
    this.#channels = channels
    this.#clock = clock
  }

  /** Returns whether the subscription to this channel, for the waiters of this lock, is active. */
  hears(key: string, channel: Channel): boolean {
    return this.#heard.get(key)?.[channel] === true
  }

  /**
   * Subscribes for the waiters of this lock. Resolves when the subscription is active. Returns undefined if the
   * subscription is active already. If subscribing fails, the next waiter subscribes again.
   */
  hear(key: string, channel: Channel): Promise<void> | undefined {
    const heard = this.#heard.get(key) ?? {}
    const known = heard[channel]
    if (known) return known === true ? undefined : known
    this.#heard.set(key, heard)
    const hearing = this.#channels.hear(key, channel)
    heard[channel] = hearing ?? true
    hearing?.then(
      () => {
        if (heard[channel] === hearing) heard[channel] = true
      },
      () => {
        if (heard[channel] !== hearing) return
        heard[channel] = undefined
        this.#channels.drop(key, channel)
      },
    )
    return hearing
  }

  /**
   * Subscribes like `hear`, but also resolves after `limit` ms, or if the connection for messages is broken. In these
   * cases the waiter continues without messages: its requests may still reach Redis, and the slow timer reads the
   * lock's state (I4). Rejects if Redis refuses the subscription.
   */
  heed(key: string, channel: Channel, limit: number): Promise<void> | undefined {
    const hearing = this.hear(key, channel)
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

  /** Drops the subscriptions of a lock that has no waiters left. */
  drop(key: string): void {
    const heard = this.#heard.get(key)
    if (!heard || !this.#heard.delete(key)) return
    for (const channel of Object.keys(heard) as Channel[]) {
      if (heard[channel]) this.#channels.drop(key, channel)
      heard[channel] = undefined
    }
  }
}

/** The channels that a client hears for the waiters of each lock: subscribed when the first needs one, dropped with the last. */
import type { Clock } from '../clock.ts'
import { isRefusal } from '../errors.ts'
import type { Channel, Channels } from '../kind.ts'

/** A promise resolves when the channel was first heard; `true`: it has been. */
type Heard = { [C in Channel]?: Promise<void> | true | undefined }

export class Ears {
  readonly #channels: Channels
  readonly #clock: Clock
  readonly #heard = new Map<string, Heard>()

  constructor(channels: Channels, clock: Clock) {
    this.#channels = channels
    this.#clock = clock
  }

  /** Whether the channel has been heard for the waiters of this lock. */
  hears(key: string, channel: Channel): boolean {
    return this.#heard.get(key)?.[channel] === true
  }

  /** Resolves when the channel is heard; undefined: it is. One that cannot be heard is not counted as heard by the next waiter. */
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
   * As `hear`, but goes on after `limit` ms, and where the way of messages is broken: that of commands may be open, and the
   * slow timer does without messages (I4). Rejects only what Redis refuses.
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

  /** Nobody waits for the lock any more. */
  drop(key: string): void {
    const heard = this.#heard.get(key)
    if (!heard || !this.#heard.delete(key)) return
    for (const channel of Object.keys(heard) as Channel[]) {
      if (heard[channel]) this.#channels.drop(key, channel)
      heard[channel] = undefined
    }
  }
}

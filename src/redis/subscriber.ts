/**
 * The client's ears: one connection in subscriber mode, and the set of channels that somebody needs. Those of a cluster are
 * in shards.ts.
 *
 * A channel counts as heard only from the moment the server has confirmed it on the present connection: "connected" is
 * not "subscribed", and every message in between is lost. So after a reconnect each channel is subscribed again, one
 * SUBSCRIBE each (a longer one that is cut half-way would shift all later confirmations), and only when all are
 * confirmed is `heard` called, upon which everybody who waits looks at the truth in Redis again (I4).
 *
 * Channels that nobody needs any more linger for a moment: under contention the last waiter of a key leaves and the next
 * arrives thousands of times a second.
 */
import type { Cluster, Redis } from 'ioredis'
import type { Clock, Timer } from '../clock.ts'
import { LockConnectionError } from '../errors.ts'
import type { Connection } from './connection.ts'

/** How long a channel is kept without a user, in ms. */
const LINGER = 1_000

interface Subscription {
  users: number
  /** Set while subscribing, on the present connection. */
  pending: Promise<void> | undefined
  confirmed: boolean
  idleSince: number
}

export interface SubscriberListener {
  message(channel: string, text: string): void
  /** Every channel is confirmed again, after at least one message may have been lost. */
  heard(): void
}

export class Subscriber {
  readonly #connection: Connection
  readonly #clock: Clock
  readonly #ears: SubscriberListener
  readonly #channels = new Map<string, Subscription>()
  #sweep: Timer | undefined
  #closed = false

  /** `connection` is the subscriber's own; its owner calls `restore` whenever it has come up. */
  constructor(connection: Connection, clock: Clock, ears: SubscriberListener) {
    this.#connection = connection
    this.#clock = clock
    this.#ears = ears
    connection.redis.on('message', (channel: string, text: string) => {
      if (!this.#closed) ears.message(channel, text)
    })
  }

  /**
   * Counts one more user of the channel. Undefined: it is heard already. A promise: it will be, when this resolves;
   * rejects with LockConnectionError. Each call is matched by one `drop`, also when it rejects.
   */
  need(name: string): Promise<void> | undefined {
    let channel = this.#channels.get(name)
    if (!channel) {
      channel = { users: 0, pending: undefined, confirmed: false, idleSince: 0 }
      this.#channels.set(name, channel)
    }
    channel.users += 1
    return channel.confirmed ? undefined : (channel.pending ?? this.#subscribe(name, channel))
  }

  drop(name: string): void {
    const channel = this.#channels.get(name)
    if (!channel || --channel.users > 0) return
    channel.idleSince = this.#clock.now()
    this.#armSweep()
  }

  /** Whether the channel is confirmed on the present connection. */
  isHeard(name: string): boolean {
    return this.#channels.get(name)?.confirmed ?? false
  }

  /** The connection is gone: nothing is heard until `restore` has run. */
  deafen(): void {
    for (const channel of this.#channels.values()) channel.confirmed = false
  }

  /** The connection is new: subscribes everything again, then says so. */
  async restore(): Promise<void> {
    const pending = [...this.#channels].map(([name, channel]) => channel.pending ?? this.#subscribe(name, channel))
    await Promise.allSettled(pending)
    if (!this.#closed) this.#ears.heard()
  }

  close(): void {
    this.#closed = true
    this.#sweep?.cancel()
    this.#channels.clear()
  }

  #subscribe(name: string, channel: Subscription): Promise<void> {
    const subscribe = (redis: Redis | Cluster) => redis.subscribe(name)
    channel.pending = this.#connection
      .run(subscribe)
      .then(
        () => {
          channel.confirmed = true
        },
        error => {
          throw new LockConnectionError(`cannot subscribe to ${name}`, error.cause ?? error)
        },
      )
      .finally(() => {
        channel.pending = undefined
      })
    channel.pending.catch(() => {})
    return channel.pending
  }

  #armSweep(): void {
    if (this.#sweep || this.#closed) return
    this.#sweep = this.#clock.after(LINGER, () => {
      this.#sweep = undefined
      const now = this.#clock.now()
      let lingering = false
      for (const [name, channel] of this.#channels) {
        if (channel.users > 0) continue
        if (now - channel.idleSince < LINGER || channel.pending) lingering = true
        else this.#unsubscribe(name)
      }
      if (lingering) this.#armSweep()
    })
  }

  #unsubscribe(name: string): void {
    this.#channels.delete(name)
    if (!this.#connection.up) return
    // Sent once and never again: repeated on a later connection it could end a subscription that is needed by then.
    this.#connection.redis.unsubscribe(name).catch(() => {})
  }
}

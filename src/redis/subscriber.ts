/**
 * The client's subscriptions on a single server: one connection in subscriber mode, and the set of channels in use. For
 * a cluster, shards.ts does this.
 *
 * A channel counts as heard only after the server has confirmed the subscription on the current connection. Before
 * that, every message on the channel is lost, even though the connection is up. After a reconnect, each channel is
 * subscribed again with a SUBSCRIBE of its own. If one SUBSCRIBE named several channels and was cut off halfway, all
 * later confirmations would be assigned to the wrong channels. When all channels are confirmed, `heard` is called, and
 * all waiters read their state from Redis (I4).
 *
 * When the last user of a channel has left, the subscription is kept for a moment. Under contention, a key may lose its
 * last waiter and get a new one thousands of times a second. Without the delay, the client would unsubscribe and
 * subscribe again each time.
 */
import type { Cluster, Redis } from 'ioredis'
import type { Clock, Timer } from '../clock.ts'
import { LockConnectionError } from '../errors.ts'
import type { Connection } from './connection.ts'
import { WrongServer } from './refusals.ts'

/** How long a channel is kept without a user, in ms. */
const LINGER = 1_000

interface Subscription {
  users: number
  /** The SUBSCRIBE that is under way on the current connection, if any. */
  pending: Promise<void> | undefined
  confirmed: boolean
  idleSince: number
}

export interface SubscriberListener {
  message(channel: string, text: string): void
  /** Called when the subscriptions to all channels are confirmed again. Before that, messages may have been lost. */
  heard(): void
}

export class Subscriber {
  readonly connection: Connection
  readonly #clock: Clock
  readonly #ears: SubscriberListener
  readonly #channels = new Map<string, Subscription>()
  /** Whether every subscription is confirmed on the current connection. Until then, messages may be lost. */
  hears = false
  #sweep: Timer | undefined
  #closed = false

  /** `connection` is for this subscriber alone. Each time it has come up, redis/link.ts calls `restore`. */
  constructor(connection: Connection, clock: Clock, ears: SubscriberListener) {
    this.connection = connection
    this.#clock = clock
    this.#ears = ears
    connection.redis.on('message', (channel: string, text: string) => {
      if (!this.#closed) ears.message(channel, text)
    })
  }

  /**
   * Counts one more user of the channel. If the subscription is already confirmed, returns undefined. Otherwise returns
   * a promise that resolves when the subscription is confirmed, and rejects with LockConnectionError. Each call of
   * `need` must be followed by one `drop`, even if the promise rejects.
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

  /** Returns whether the channel is confirmed on the current connection. */
  isHeard(name: string): boolean {
    return this.#channels.get(name)?.confirmed ?? false
  }

  /** Called when the connection is gone. No message arrives until `restore` has run. */
  deafen(): void {
    this.hears = false
    for (const channel of this.#channels.values()) channel.confirmed = false
  }

  /** Called on a new connection. Subscribes every channel again, then calls `heard`. */
  async restore(): Promise<void> {
    const pending = [...this.#channels].map(([name, channel]) => channel.pending ?? this.#subscribe(name, channel))
    await Promise.allSettled(pending)
    if (this.#closed) return
    this.hears = true
    this.#ears.heard()
  }

  close(): void {
    this.#closed = true
    this.#sweep?.cancel()
    this.#channels.clear()
  }

  #subscribe(name: string, channel: Subscription): Promise<void> {
    const subscribe = (redis: Redis | Cluster) => redis.subscribe(name)
    channel.pending = this.connection
      .run(subscribe)
      .then(
        () => {
          channel.confirmed = true
        },
        error => {
          if (error instanceof WrongServer) throw error
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
    if (!this.connection.up) return
    // UNSUBSCRIBE is sent only once. On a later connection, it could end a subscription that is needed again.
    this.connection.redis.unsubscribe(name).catch(() => {})
  }
}

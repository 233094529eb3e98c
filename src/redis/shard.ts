/**
 * A connection that receives the messages of one master of a cluster. shards.ts decides to which channels the
 * connection subscribes.
 */
import type { Redis } from 'ioredis'
import type { Clock } from '../clock.ts'
import { ownConnectionTo } from './clients.ts'
import { Connection } from './connection.ts'
import { clusterMember } from './destination.ts'

export interface ShardListener {
  message(channel: string, text: string): void
  /** Called when the connection is gone, or another attempt to connect has failed: no messages arrive. */
  down(shard: Shard, error: Error): void
  /** Called when the server has ended subscriptions, because their slots have moved to another server. */
  reduced(shard: Shard): void
}

/** Errors of a server that no longer has the slot of the channel, or does not know yet that it has the slot. */
const notHere = /^(MOVED|CLUSTERDOWN)\b/

export class Shard {
  /** The name of the node in ioredis: host:port. */
  readonly node: string
  readonly #redis: Redis
  readonly #connection: Connection
  /**
   * For each unanswered SSUBSCRIBE, a function that settles it, because ioredis 5 never settles an SSUBSCRIBE that is
   * answered by MOVED.
   */
  readonly #asked = new Set<() => void>()
  #reduced = false

  /** `member` is ioredis's own connection to the node. Only its settings are read. */
  constructor(member: Redis, node: string, clock: Clock, outageTimeout: number, listener: ShardListener) {
    this.node = node
    const redis = ownConnectionTo(member)
    this.#redis = redis
    const connectionListener = {
      // When the connection comes up, `Connection` itself sends the waiting calls.
      up: () => {},
      down: (error: Error) => listener.down(this, error),
    }
    this.#connection = new Connection(redis, clock, outageTimeout, connectionListener, clusterMember)
    redis.on('smessage', (channel: string, text: string) => listener.message(channel, text))
    // ioredis emits 'moved' once for each channel whose subscription the server has ended. All these channels are
    // handled together.
    redis.on('moved', () => {
      if (this.#reduced) return
      this.#reduced = true
      queueMicrotask(() => {
        this.#reduced = false
        for (const refuse of this.#asked) refuse()
        listener.reduced(this)
      })
    })
    // When the server ends a subscription, ioredis 5 mistakes the server's message for the answer to a command. From
    // then on it assigns every answer to the wrong command. So the connection is made again.
    redis.on('error', (error: Error) => {
      if (/^Command queue state error/.test(error.message)) this.#connection.reset(error)
    })
    this.#connection.open()
  }

  get up(): boolean {
    return this.#connection.up
  }

  /** The channels to which this connection is subscribed, as ioredis knows them. */
  get channels(): ReadonlySet<string> {
    const set = this.#redis.condition?.subscriber
    return new Set(set ? set.channels('ssubscribe') : [])
  }

  /**
   * Subscribes to the channel. Resolves to true when the server has confirmed the subscription on the current
   * connection. Resolves to false if the server does not have the channel's slot.
   */
  subscribe(channel: string): Promise<boolean> {
    return this.#connection.run(() => this.#ask(channel))
  }

  #ask(channel: string): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const refuse = () => settle(false)
      const settle = (confirmed: boolean) => {
        this.#asked.delete(refuse)
        resolve(confirmed)
      }
      this.#asked.add(refuse)
      this.#redis.ssubscribe(channel).then(
        () => settle(true),
        (error: Error) => {
          if (notHere.test(error.message)) return settle(false)
          this.#asked.delete(refuse)
          reject(error)
        },
      )
    })
  }

  /** Ends the subscription. The command is sent only once: if the connection is lost, the subscription ends anyway. */
  leave(channel: string): void {
    if (this.up) this.#redis.sunsubscribe(channel).catch(() => {})
  }

  close(): void {
    this.#connection.close()
  }
}

/** The connection that receives the messages of one master of a cluster. */
import type { Redis } from 'ioredis'
import type { Clock } from '../clock.ts'
import { ownConnectionTo } from './clients.ts'
import { Connection } from './connection.ts'
import { clusterMember } from './destination.ts'
import type { MessageServer } from './subscriber.ts'

export interface ShardListener {
  onMessage(channel: string, text: string): void
  onUp(): void
  /** The connection is gone, or another attempt to connect has failed: no messages arrive. */
  onDown(error: Error): void
  /** The server has ended subscriptions, because their slots have moved to another server. */
  onReduced(): void
}

/** Errors of a server that no longer has the slot of the channel, or does not know yet that it has the slot. */
const notHere = /^(MOVED|CLUSTERDOWN)\b/

export class Shard implements MessageServer {
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

  /** `member` is ioredis's own connection to the node. Only its settings are read. `accepted`: see `Uplink`. */
  constructor(
    member: Redis,
    node: string,
    clock: Clock,
    outageTimeout: number,
    accepted: boolean,
    listener: ShardListener,
  ) {
    this.node = node
    const redis = ownConnectionTo(member)
    this.#redis = redis
    this.#connection = new Connection(redis, clock, outageTimeout, listener, clusterMember)
    redis.on('smessage', (channel: string, text: string) => listener.onMessage(channel, text))
    // ioredis emits 'moved' once for each channel whose subscription the server has ended. All these channels are
    // handled together.
    redis.on('moved', () => {
      if (this.#reduced) return
      this.#reduced = true
      queueMicrotask(() => {
        this.#reduced = false
        for (const refuse of this.#asked) refuse()
        listener.onReduced()
      })
    })
    // When the server ends a subscription, ioredis 5 mistakes the server's message for the answer to a command. From
    // then on it assigns every answer to the wrong command. So the connection is made again.
    redis.on('error', (error: Error) => {
      if (/^Command queue state error/.test(error.message)) this.#connection.uplink.reset(error)
    })
    this.#connection.uplink.accepted = accepted
    this.#connection.uplink.open()
  }

  get up(): boolean {
    return this.#connection.up
  }

  /** The channels to which this connection is subscribed, as ioredis knows them. */
  get channels(): ReadonlySet<string> {
    const set = this.#redis.condition?.subscriber
    return new Set(set ? set.channels('ssubscribe') : [])
  }

  subscribe(channel: string): Promise<boolean> {
    return this.#connection.run(() => this.#ask(channel))
  }

  /** An answer shows that the connection is alive and that the slot is still on this server. */
  probe(channel: string): Promise<boolean> {
    return this.subscribe(channel)
  }

  unsubscribe(channel: string): void {
    if (this.up) this.#redis.sunsubscribe(channel).catch(() => {})
  }

  close(): void {
    this.#connection.close()
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
}

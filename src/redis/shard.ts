/** The subscriber's connection to one master of a cluster. Which channels it is asked for is the business of shards.ts. */
import type { Redis } from 'ioredis'
import type { Clock } from '../clock.ts'
import { ownConnectionTo } from './clients.ts'
import { Connection } from './connection.ts'
import { namedServer } from './destination.ts'

export interface ShardListener {
  message(channel: string, text: string): void
  /** The connection is gone, or once more could not be made: nothing is heard here. */
  down(shard: Shard, error: Error): void
  /** The server has ended subscriptions by itself, because their slots have left it. */
  reduced(shard: Shard): void
}

/** Answers of a server that has the slot no more, or does not know yet that it has. */
const notHere = /^(MOVED|CLUSTERDOWN)\b/

export class Shard {
  /** host:port, by which ioredis names it. */
  readonly node: string
  readonly #redis: Redis
  readonly #connection: Connection
  /** Ends each request that is not answered: ioredis 5 never does, where the answer is MOVED. */
  readonly #asked = new Set<() => void>()
  #reduced = false

  /** `member`: the node among those of the cluster; its settings are used, not its connection. */
  constructor(member: Redis, node: string, clock: Clock, outageTimeout: number, listener: ShardListener) {
    this.node = node
    const redis = ownConnectionTo(member)
    this.#redis = redis
    const told = {
      // Calls that wait for the connection leave by themselves.
      up: () => {},
      down: (error: Error) => listener.down(this, error),
    }
    this.#connection = new Connection(redis, clock, outageTimeout, told, namedServer)
    redis.on('smessage', (channel: string, text: string) => listener.message(channel, text))
    // Once for each channel that was ended: all of them are looked at together.
    redis.on('moved', () => {
      if (this.#reduced) return
      this.#reduced = true
      queueMicrotask(() => {
        this.#reduced = false
        for (const refuse of this.#asked) refuse()
        listener.reduced(this)
      })
    })
    // ioredis 5 takes the end of a subscription for the answer to something, and whatever comes later for that of the next.
    redis.on('error', (error: Error) => {
      if (/^Command queue state error/.test(error.message)) this.#connection.reset(error)
    })
    this.#connection.open()
  }

  get up(): boolean {
    return this.#connection.up
  }

  /** The channels that are subscribed, as ioredis has counted. */
  get channels(): ReadonlySet<string> {
    const set = this.#redis.condition?.subscriber
    return new Set(set ? set.channels('ssubscribe') : [])
  }

  /** Resolves to whether the server has confirmed it on the present connection; false: its slot is not there. */
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

  /** Sent once and never again: a connection that is gone has ended it already. */
  leave(channel: string): void {
    if (this.up) this.#redis.sunsubscribe(channel).catch(() => {})
  }

  close(): void {
    this.#connection.close()
  }
}

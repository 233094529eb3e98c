/**
 * One Redis, which may be a cluster or have sentinels: everything between a client and its Redis. There is a connection
 * for scripts, one for messages (messages.ts), and with the option `replicas` one for their confirmations. In a cluster,
 * each master has the first two.
 */
import type { Cluster } from 'ioredis'
import type { Backend, Made } from '../backend.ts'
import type { Clock, Timer } from '../clock.ts'
import { LockConnectionError, type LockError } from '../errors.ts'
import type { Channel, Channels, KindDefinition } from '../kind.ts'
import type { Settings } from '../settings.ts'
import { clientsOf, type RedisSource } from './clients.ts'
import { answerLimit, Connection, type ConnectionListener } from './connection.ts'
import { singleServer } from './destination.ts'
import { warnOfEviction } from './eviction.ts'
import { type Ids, randomIds } from './ids.ts'
import { Keys, lockOfChannel, Namespace, unlockChannel } from './keys.ts'
import type { LinkListener } from './link.ts'
import { listKeys } from './listing.ts'
import { OneServer } from './one-server.ts'
import { Replication } from './replication.ts'
import { type Executor, Scripts } from './scripts.ts'
import { Sentinels } from './sentinels.ts'
import { Shards } from './shards.ts'
import { slotOf } from './slot.ts'
import { Subscriber } from './subscriber.ts'

/** The longest and the shortest time between two probes of the connections that only listen, in ms. */
const PROBE = { longest: 5_000, shortest: 500 }

export class Server implements Backend {
  readonly ids: Ids
  readonly names: Namespace
  readonly commands: Connection
  /** Runs scripts, and waits until enough replicas confirm their effect. Undefined: no confirmation is required. */
  readonly #replication: Executor | undefined
  /** All connections to the server that has the locks; in a cluster, those for commands. */
  readonly #connections: Connection[] = []
  readonly #subscriber: Subscriber
  /** The inbox for all locks, and in a cluster the end of the names of all inboxes. */
  readonly #inbox: string
  readonly #sentinels: Sentinels | undefined
  readonly #settings: Settings
  readonly #clock: Clock
  readonly #listener: LinkListener
  #probe: Timer | undefined
  /** Whether the listener knows that a connection is gone. */
  #reported = false
  readonly #warned = new Set<string>()

  /** `ids` makes the ids of the client; by default, they are random. */
  constructor(source: RedisSource, settings: Settings, clock: Clock, listener: LinkListener, ids = randomIds()) {
    const { cluster, database, keyPrefix, make, sentinels } = clientsOf(source)
    const { outageTimeout, prefix, replicas } = settings
    this.ids = ids
    this.#settings = settings
    this.#clock = clock
    this.#listener = listener
    this.names = new Namespace(`${keyPrefix}${prefix}:`, cluster)
    this.#inbox = this.names.inboxPrefix('') + ids.client

    const deafness = 'a sentinel does not report failovers, so this client may notice a failover late'
    this.#sentinels =
      sentinels &&
      new Sentinels(sentinels, clock, outageTimeout, {
        onSwitched: () =>
          this.#moved(new Error('the sentinels have made a different server the master, so the client connects to it')),
        onDeaf: error => this.#warn(new LockConnectionError(deafness, error)),
      })
    const destination = cluster ? {} : singleServer(word => `${this.names.root}{${word}}`, database)
    const connect = (own: ConnectionListener, blocks?: number) => {
      const redis = make(answerLimit(outageTimeout, true))
      this.#sentinels?.explain(redis)
      const each: ConnectionListener = {
        ...own,
        onUp: () => {
          own.onUp?.()
          // The other connections to the server try again at once, too. Otherwise commands may work long before messages
          // arrive. A waiter would then join the queue, receive no messages, and be passed over.
          for (const { uplink } of this.#connections) uplink.hurry()
        },
        onDemoted: error => this.#moved(error),
        busy: () => listener.busy(),
      }
      const made = new Connection(redis, clock, outageTimeout, each, destination, blocks)
      this.#connections.push(made)
      return made
    }
    this.commands = connect({
      onUp: () => {
        listener.onUp()
        // In a cluster, each channel tells for itself when its messages arrive again.
        if (cluster) listener.onMessagesResumed()
        this.#cameBack()
        warnOfEviction(this.commands.redis, error => this.#warn(error))
      },
      onDown: (error, brief) => {
        if (!brief) this.#broken(error)
        listener.onDown(error, brief)
      },
    })
    const { redis, uplink } = this.commands
    const onDown = (error: Error) => this.#broken(error)
    const toOneServer = (subscriber: Subscriber) =>
      new OneServer(this.commands, connect, this.#inbox, subscriber, { messages: listener, onDown })
    const toShards = (subscriber: Subscriber) =>
      new Shards(redis as Cluster, clock, outageTimeout, subscriber, {
        messages: listener,
        onDown,
        onMoved: slots => listener.onMoved?.(place => slots.has(slotOf(`{${place}}`))),
        isAccepted: () => uplink.accepted,
      })
    this.#subscriber = new Subscriber(clock, cluster ? toShards : toOneServer, {
      onWhole: () => this.#cameBack(),
      onResumed: channel => {
        if (cluster) listener.onMessagesResumed(lockOfChannel(channel) ?? channel.slice(0, -this.#inbox.length))
      },
    })
    if (!replicas) return
    // This connection needs no listener: if it is down, its requests fail, and thus report it.
    const confirmations = connect({}, replicas.timeout)
    this.#replication = new Replication(confirmations, replicas, lock => this.names.placeOfLock(lock), outageTimeout)
  }

  get inboxPerLock(): boolean {
    return this.names.cluster
  }

  get up(): boolean {
    return this.commands.up
  }

  get reachable(): boolean {
    return this.up
  }

  get answeredAt(): number {
    return this.commands.answeredAt
  }

  trouble(): Error | undefined {
    return this.commands.trouble
  }

  async rest(): Promise<void> {}

  together(): void {
    this.commands.together()
  }

  open(): void {
    for (const { uplink } of this.#connections) uplink.open()
    this.#sentinels?.open()
    this.#armProbe()
    // The client subscribes to its inbox even if it has no waiters, because a "lost" message may come for a hold. As
    // long as the subscription is not confirmed, only renewals detect lost holds.
    if (!this.inboxPerLock) this.#subscriber.need(this.#inbox)
  }

  make<State, S>(kind: KindDefinition<State, S>, warn: (error: LockError) => void): Made<State> {
    const keys = new Keys(this.names, kind)
    const { cluster, inboxes, pattern } = this.names
    const settings = { cluster, inboxes, tokenMemory: this.#settings.tokenMemory }
    const through = (executor: Executor) => new Scripts(executor, kind.scripts, settings, pattern)
    const parts = {
      names: keys,
      scripts: through(this.commands),
      replicated: this.#replication && through(this.#replication),
      newId: this.ids.next,
    }
    return { keys, kind: kind.make({ ...this.#settings, ...parts, warn }) }
  }

  channels(keys: Keys): Channels {
    const nameOf = (key: string, channel: Channel) => {
      const { lock } = keys.of(key)
      if (channel === 'unlock') return unlockChannel(lock)
      return this.inboxPerLock ? this.names.inboxPrefix(lock) + this.ids.client : this.#inbox
    }
    return {
      subscribe: (key, channel) => this.#subscriber.need(nameOf(key, channel)),
      unsubscribe: (key, channel) => this.#subscriber.drop(nameOf(key, channel)),
      isSubscribed: (key, channel) => this.#subscriber.isSubscribed(nameOf(key, channel)),
    }
  }

  list(kinds: readonly Keys[], pattern: string): ReturnType<typeof listKeys> {
    return listKeys(this.commands, this.names, kinds, pattern)
  }

  close(): void {
    this.#probe?.cancel()
    this.#sentinels?.close()
    this.#subscriber.close()
    for (const connection of this.#connections) connection.close()
  }

  #armProbe(): void {
    const pause = Math.min(PROBE.longest, Math.max(PROBE.shortest, this.#settings.waiterTtl / 3))
    this.#probe = this.#clock.after(pause, () => {
      this.#armProbe()
      this.#sentinels?.probe()
      if (this.#listener.busy()) this.#subscriber.probe()
    })
  }

  #warn(error: LockError): void {
    if (this.#warned.has(error.message)) return
    this.#warned.add(error.message)
    this.#listener.onWarning?.(error)
  }

  /** Resets every connection, because another server is the master now. */
  #moved(reason: Error): void {
    for (const { uplink } of this.#connections) uplink.reset(reason)
  }

  #broken(error: Error): void {
    if (this.#reported) return
    this.#reported = true
    this.#listener.onDisconnected(error)
  }

  /** A connection is up again, or every channel is. If nothing is missing any more, says so. */
  #cameBack(): void {
    if (!this.commands.up || !this.#subscriber.whole) return
    if (!this.names.cluster) this.#listener.onMessagesResumed()
    if (!this.#reported) return
    this.#reported = false
    this.#listener.onReconnected()
  }
}

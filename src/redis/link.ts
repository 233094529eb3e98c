/**
 * Everything between a client and its Redis: one connection for scripts, and one for messages (messages.ts). In a
 * cluster, each master has both connections.
 *
 * A subscriber only listens, so it cannot detect that its connection is half-open. So while a waiter or a hold depends
 * on messages, the client sends a beat to its own inbox every few seconds. If a beat has not arrived when the next one
 * is due, the connection is torn down and made again. In a cluster, channels belong to the slots of locks. There the
 * client sends no beats, but subscribes again to one channel on each server.
 */
import type { Cluster } from 'ioredis'
import { awake, type Clock, type Timer } from '../clock.ts'
import { LockConnectionError, type LockError } from '../errors.ts'
import type { Channel, Channels } from '../kind.ts'
import type { Settings } from '../settings.ts'
import { clientsOf, type RedisSource } from './clients.ts'
import { answerLimit, Connection, type ConnectionListener } from './connection.ts'
import { singleServer } from './destination.ts'
import { warnOfEviction } from './eviction.ts'
import { type Ids, randomIds } from './ids.ts'
import { type Keys, lockOfChannel, Namespace, unlockChannel } from './keys.ts'
import { listKeys } from './listing.ts'
import { type MessageListener, readerFor } from './messages.ts'
import { Replication } from './replication.ts'
import type { Executor } from './scripts.ts'
import { Sentinels } from './sentinels.ts'
import { Shards } from './shards.ts'
import { slotOf } from './slot.ts'
import { Subscriber } from './subscriber.ts'

/** Receives everything that arrives from Redis, for all kinds of lock. */
export interface LinkListener extends MessageListener {
  /**
   * Called when the connection for commands is gone (`down`), or up again (`up`). `brief`: it will probably be up again
   * at once.
   */
  down(error: Error, brief: boolean): void
  up(): void
  /**
   * Called when messages arrive again after a gap. Messages about `lock`, or about all locks if it is absent, may have
   * been lost.
   */
  heard(lock?: string): void
  /** Called when some slots of a cluster have another master. `affects` returns whether a place is in one of them. */
  moved?(affects: (place: string) => boolean): void
  /** Called when a connection is gone (`disconnected`), or when all connections are up again (`reconnected`). */
  disconnected(error: Error): void
  reconnected(): void
  /** Reports a problem that does harm, but makes no call fail. Called once for each problem. */
  warned?(error: LockError): void
  /** Returns whether a waiter or a hold depends on messages now. */
  busy(): boolean
}

/** The longest and the shortest time between two beats, in ms. */
const BEAT = { longest: 5_000, shortest: 500 }
/** After this process was stopped and continued, it gets this many ms to read the messages that arrived meanwhile. */
const UNREAD = 50

export class Link {
  readonly ids: Ids
  readonly names: Namespace
  readonly commands: Connection
  /** Runs scripts, and waits until enough replicas confirm their effect. Undefined: no confirmation is required. */
  protected readonly replication: Executor | undefined
  /**
   * The connections for commands, for messages, and for confirmations by replicas. They lead to the server that has the
   * locks, or in a cluster to all masters.
   */
  readonly #connections: Connection[] = []
  /** Listens to a single server. Undefined in a cluster. */
  readonly #single: Subscriber | undefined
  readonly #shards: Shards | undefined
  readonly #ears: Subscriber | Shards
  readonly #sentinels: Sentinels | undefined
  readonly #listener: LinkListener
  readonly #clock: Clock
  readonly #beatEvery: number
  #beatTimer: Timer | undefined
  #beat = { sent: 0, heard: 0 }
  #reported = false
  readonly #warned = new Set<string>()

  constructor(source: RedisSource, settings: Settings, clock: Clock, listener: LinkListener, ids = randomIds()) {
    const clients = clientsOf(source)
    this.ids = ids
    this.#listener = listener
    this.#clock = clock
    this.names = new Namespace(`${clients.keyPrefix}${settings.prefix}:`, clients.cluster)
    this.#beatEvery = Math.min(BEAT.longest, Math.max(BEAT.shortest, settings.waiterTtl / 3))

    const silence = answerLimit(settings.outageTimeout, true)
    const switched = () =>
      this.#moved(new Error('the sentinels have made a different server the master, so the client connects to it'))
    const deafness = 'a sentinel does not report failovers, so this client may notice a failover late'
    const deaf = (error: Error) => this.#warn(new LockConnectionError(deafness, error))
    this.#sentinels = clients.sentinels && new Sentinels(clients.sentinels, switched, deaf)
    const { cluster, database } = clients
    const destination = cluster ? {} : singleServer(word => `${this.names.root}{${word}}`, database)
    const connection = (listener: ConnectionListener, blocks?: number) => {
      const redis = clients.make(silence)
      this.#sentinels?.explain(redis)
      const up = () => {
        listener.up()
        // The other connections to the server try again at once, too. Otherwise commands may work long before messages
        // arrive. A waiter would then join the queue, receive no messages, and be passed over.
        for (const other of this.#connections) other.hurry()
      }
      const demoted = (error: Error) => this.#moved(error)
      const busy = () => this.#listener.busy()
      const all = { ...listener, up, demoted, busy }
      const made = new Connection(redis, clock, settings.outageTimeout, all, destination, blocks)
      this.#connections.push(made)
      return made
    }
    this.commands = connection({
      up: () => {
        this.#changed()
        listener.up()
        warnOfEviction(this.commands.redis, error => this.#warn(error))
      },
      down: (error, brief) => {
        if (!brief) this.#broken(error)
        listener.down(error, brief)
      },
    })
    if (cluster) this.#ears = this.#shards = this.#listenToShards(settings.outageTimeout)
    else this.#ears = this.#single = this.#listenToOne(connection)
    if (!settings.replicas) return
    this.replication = new Replication(
      // This connection needs no listener: if it is down, its requests fail, and thus report it.
      connection({ up() {}, down() {} }, settings.replicas.timeout),
      settings.replicas,
      lock => this.names.placeOfLock(lock),
      settings.outageTimeout,
    )
  }

  /** Whether each lock has an inbox of its own (`Backend`). */
  get inboxPerLock(): boolean {
    return this.#shards !== undefined
  }

  open(): void {
    for (const connection of this.#connections) connection.open()
    this.#sentinels?.open()
    this.#armBeat()
    // The client subscribes to its inbox even if it has no waiters, because a "lost" message may come for a hold. As
    // long as the subscription is not confirmed, only renewals detect lost holds.
    this.#single?.need(this.#ownInbox)?.catch(() => {})
  }

  list(kinds: readonly Keys[], pattern: string): ReturnType<typeof listKeys> {
    return listKeys(this.commands, this.names, kinds, pattern)
  }

  /** Returns the subscriptions of the locks of one kind. */
  channels(keys: Keys): Channels {
    const inbox = this.#shards ? undefined : this.#ownInbox
    const nameOf = (key: string, channel: Channel) => {
      if (channel === 'unlock') return unlockChannel(keys.of(key).lock)
      return inbox ?? this.names.inboxPrefix(keys.of(key).lock) + this.ids.client
    }
    return {
      hear: (key, channel) => this.#ears.need(nameOf(key, channel)),
      drop: (key, channel) => this.#ears.drop(nameOf(key, channel)),
      hears: (key, channel) => this.#ears.isHeard(nameOf(key, channel)),
    }
  }

  close(): void {
    this.#beatTimer?.cancel()
    this.#sentinels?.close()
    this.#ears.close()
    for (const connection of this.#connections) connection.close()
  }

  #listenToOne(connect: (listener: ConnectionListener) => Connection): Subscriber {
    const connection = connect({
      up: () => subscriber.restore(),
      down: (error, brief) => {
        subscriber.deafen()
        if (!brief) this.#broken(error)
      },
    })
    const subscriber = new Subscriber(connection, this.#clock, {
      message: this.#readMessages(),
      heard: () => {
        this.#beat.heard = this.#beat.sent
        this.#changed()
        this.#listener.heard()
      },
    })
    return subscriber
  }

  #listenToShards(outageTimeout: number): Shards {
    return new Shards(this.commands.redis as Cluster, this.#clock, outageTimeout, {
      message: this.#readMessages(),
      heard: channel => {
        this.#listener.heard(lockOfChannel(channel) ?? channel.slice(0, -this.#ownInbox.length))
      },
      down: error => this.#broken(error),
      whole: () => this.#changed(),
      isOutdated: (error): error is Error => this.commands.isOutdated(error),
      moved: slots => this.#listener.moved?.(place => slots.has(slotOf(`{${place}}`))),
    })
  }

  #readMessages() {
    return readerFor(this.#listener, beat => {
      // Only the latest beat counts. A smaller number belongs to an earlier beat. A larger number does not come from this
      // client.
      if (beat === this.#beat.sent) this.#beat.heard = this.#beat.sent
    })
  }

  get #ownInbox(): string {
    return this.names.inboxPrefix('') + this.ids.client
  }

  #armBeat(): void {
    this.#beatTimer = this.#clock.after(this.#beatEvery, () => {
      this.#armBeat()
      if (this.#shards) {
        if (this.#listener.busy()) this.#shards.probe()
        return
      }
      const { sent, heard } = this.#beat
      if (sent > heard && this.#single?.connection.up) this.#judge(sent)
      else if (this.#whole && this.#listener.busy()) {
        this.#beat.sent += 1
        // A failed PUBLISH says nothing about whether messages arrive. So the beat is not sent again, and counts as
        // arrived.
        this.commands.redis.publish(this.#ownInbox, `beat ${this.#beat.sent}`).then(
          listeners => this.#counted(listeners),
          () => {
            this.#beat.heard = this.#beat.sent
          },
        )
      }
    })
  }

  /**
   * Called when the next beat is due and beat number `sent` has not arrived. If this process did not run for a while,
   * the beat may still be unread in the socket. So this method first waits a moment in which the beat can be read, and
   * only then resets the connection.
   */
  #judge(sent: number): void {
    awake(this.#clock).after(UNREAD, () => {
      if (this.#beat.heard >= sent) return
      this.#beat.heard = sent
      this.#single?.connection.reset(new Error('messages from Redis no longer arrive, so the client connects again'))
    })
  }

  /**
   * Called with the number of subscribers that received a beat on the server that executes the commands. If the number
   * is 0, this client's subscriber is connected to another server, for example to a former master that is now a
   * replica. Replication forwards beats to the replica, so the beats still arrive. But the scripts find no subscriber
   * of this client's inbox, and pass over its waiters.
   */
  #counted(listeners: number): void {
    this.commands.arrived()
    if (listeners !== 0 || !this.#whole) return
    this.#beat.heard = this.#beat.sent
    this.#single?.connection.reset(
      new Error(
        'the connection for messages and the one for commands lead to different servers, so the client connects again',
      ),
    )
  }

  #warn(error: LockError): void {
    if (this.#warned.has(error.message)) return
    this.#warned.add(error.message)
    this.#listener.warned?.(error)
  }

  /** Resets every connection, because another server is the master now. */
  #moved(reason: Error): void {
    for (const connection of this.#connections) connection.reset(reason)
  }

  /** Whether commands reach Redis and messages arrive. */
  get #whole(): boolean {
    return this.commands.up && this.#ears.hears
  }

  #broken(error: Error): void {
    if (this.#reported) return
    this.#reported = true
    this.#listener.disconnected(error)
  }

  #changed(): void {
    if (!this.#whole || !this.#reported) return
    this.#reported = false
    this.#listener.reconnected()
  }
}

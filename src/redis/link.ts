/**
 * Everything between a client and its Redis: one connection for scripts, one for messages; in a cluster one of each kind
 * for every master.
 *
 * Messages, on channels that lua/ publishes to (all are hints, see wait/acquire.ts):
 *   inbox    "handoff|expiry <id> <token> <lock>"   the waiter <id> is the holder now; of several, "<id>,<id>… <token>,<token>…"
 *            "lost <id> <token> <lock>"             the hold <id> may have been taken away
 *            "beat <n>"                             our own, to ourselves: the way is open
 *   unlock   "free <client>", or anything else       the lock is free; released by that client
 *            "entered <owner>"                      that owner holds it now: its other waiters may re-enter
 *
 * A subscriber cannot see that its connection is half-open, for it only listens. So while anything depends on messages
 * the client sends itself one every few seconds, through the whole way that a grant would take; if it has not come by
 * the next, the connection is torn down and made anew. In a cluster, where channels belong to the slots of locks, it asks
 * each server for one of them once more instead.
 */
import type { Cluster } from 'ioredis'
import { awake, type Clock, type Timer } from '../clock.ts'
import { LockConnectionError, type LockError } from '../errors.ts'
import type { Channel, Names, Parts, ScriptSet, Via } from '../kind.ts'
import type { Settings } from '../options.ts'
import { type Clients, clientsOf, type RedisSource } from './clients.ts'
import { answerLimit, Connection, type ConnectionListener } from './connection.ts'
import { type Destination, namedServer, singleServer } from './destination.ts'
import { type Ids, randomIds } from './ids.ts'
import { type Keys, lockOfChannel, Namespace, unlockChannel } from './keys.ts'
import { listKeys } from './listing.ts'
import { Replication } from './replication.ts'
import { type Executor, Scripts } from './scripts.ts'
import { Sentinels } from './sentinels.ts'
import { Shards } from './shards.ts'
import { Subscriber } from './subscriber.ts'

/** What comes over the links, whichever kind it is about. `lock`: the name of a lock's first key. */
export interface LinkListener {
  granted(id: string, token: number, via: Via, lock: string): void
  lost(id: string, token: number): void
  /** `by`: the client that released the lock, where it is known. */
  unlocked(lock: string, by: string | undefined): void
  /** The owner of this name holds the lock now. */
  entered(lock: string, owner: string): void
  /** The connection for commands is gone, or there again. */
  down(error: Error): void
  up(): void
  /** Messages may have been missed, about all locks or about one, and come again from now on. */
  heard(lock?: string): void
  /** For events: either connection is gone; both are there again. */
  disconnected(error: Error): void
  reconnected(): void
  /** Something will do harm that no call reports. Once each. */
  warned?(error: LockError): void
  /** Whether anybody depends on messages now. */
  busy(): boolean
}

const ENTERED = 'entered '

/** Longest and shortest time between two messages to ourselves, in ms. */
const BEAT = { longest: 5_000, shortest: 500 }
/** What has come while this process did not run is read within this many ms. */
const UNREAD = 50

export class Link {
  readonly ids: Ids
  readonly names: Namespace
  readonly commands: Connection
  readonly #tokenMemory: number
  /** Runs scripts whose effect replicas must have, where the settings ask for that. */
  readonly #replication: Executor | undefined
  /** To the server that has the locks, in a cluster to all: for commands, for messages, for what replicas confirm. */
  readonly #connections: Connection[] = []
  /** Where messages come from, if that is one server. */
  readonly #single: { readonly connection: Connection; readonly subscriber: Subscriber } | undefined
  readonly #shards: Shards | undefined
  readonly #ears: Subscriber | Shards
  readonly #sentinels: Sentinels | undefined
  readonly #listener: LinkListener
  readonly #clock: Clock
  readonly #beatEvery: number
  #beatTimer: Timer | undefined
  #beat = { sent: 0, heard: 0 }
  /** Every channel is subscribed on the present connection: "connected" alone is not "heard". */
  #hears = false
  #reported = false
  readonly #warned = new Set<string>()

  constructor(source: RedisSource, settings: Settings, clock: Clock, listener: LinkListener, ids = randomIds()) {
    const clients = clientsOf(source)
    this.ids = ids
    this.#listener = listener
    this.#clock = clock
    this.names = new Namespace(`${clients.keyPrefix}${settings.prefix}:`, clients.cluster)
    this.#tokenMemory = settings.tokenMemory
    this.#beatEvery = Math.min(BEAT.longest, Math.max(BEAT.shortest, settings.waiterTtl / 3))

    const silence = answerLimit(settings.outageTimeout, true)
    this.#sentinels =
      clients.sentinels &&
      new Sentinels(
        clients.sentinels,
        () => this.#moved(),
        error => this.#warn(new LockConnectionError('a sentinel does not report failovers to this client', error)),
      )
    const destination = this.#destination(clients)
    const connection = (told: ConnectionListener) => {
      const redis = clients.make(silence)
      this.#sentinels?.explain(redis)
      const up = () => {
        told.up()
        // Whoever has its commands back, but not its messages, joins the queue and is passed over.
        for (const other of this.#connections) other.hurry()
      }
      const made = new Connection(redis, clock, settings.outageTimeout, { ...told, up }, destination)
      this.#connections.push(made)
      return made
    }
    this.commands = connection({
      up: () => {
        this.#changed()
        listener.up()
      },
      down: error => {
        this.#broken(error)
        listener.down(error)
      },
    })
    if (clients.cluster) this.#ears = this.#shards = this.#listenToShards(settings.outageTimeout)
    else {
      this.#single = this.#listenToOne(connection)
      this.#ears = this.#single.subscriber
    }
    if (!settings.replicas) return
    this.#replication = new Replication(
      // Whether it is there is only told by what is asked of it.
      connection({ up() {}, down() {} }),
      settings.replicas,
      lock => this.names.placeOfLock(lock),
      settings.outageTimeout,
    )
  }

  /** Whether each lock has an inbox of its own, which a holder does not hear unless it subscribes. */
  get inboxPerLock(): boolean {
    return this.#shards !== undefined
  }

  open(): void {
    for (const connection of this.#connections) connection.open()
    this.#sentinels?.open()
    this.#armBeat()
    // For "lost": whoever holds a lock listens, not only who waits. Until it is heard, renewals notice the same.
    this.#single?.subscriber.need(this.#ownInbox)?.catch(() => {})
  }

  /** What a kind gets of these links. */
  parts<S extends ScriptSet, N extends Names>(
    keys: Keys<N>,
    scripts: S,
  ): Pick<Parts<S, N>, 'names' | 'scripts' | 'replicated' | 'newId'> {
    const { cluster, inboxes, pattern } = this.names
    const settings = { cluster, inboxes, tokenMemory: this.#tokenMemory }
    const through = (executor: Executor) => new Scripts(executor, scripts, settings, pattern)
    return {
      names: keys,
      scripts: through(this.commands),
      replicated: this.#replication && through(this.#replication),
      newId: this.ids.next,
    }
  }

  /** The locks of several kinds whose key matches the pattern, as far as their names tell. */
  list(kinds: readonly Keys[], pattern: string): ReturnType<typeof listKeys> {
    return listKeys(this.commands, this.names, kinds, pattern)
  }

  /** The channels of a kind's locks. Each `hear` is matched by one `drop`. */
  channels(keys: Keys) {
    const nameOf = (key: string, channel: Channel) => {
      const { lock } = keys.of(key)
      return channel === 'unlock' ? unlockChannel(lock) : this.names.inboxPrefix(lock) + this.ids.client
    }
    return {
      hear: (key: string, channel: Channel) => this.#ears.need(nameOf(key, channel)),
      drop: (key: string, channel: Channel) => this.#ears.drop(nameOf(key, channel)),
      hears: (key: string, channel: Channel) => this.#ears.isHeard(nameOf(key, channel)),
    }
  }

  close(): void {
    this.#beatTimer?.cancel()
    this.#sentinels?.close()
    this.#ears.close()
    for (const connection of this.#connections) connection.close()
  }

  #destination({ cluster, sentinels }: Clients): Destination {
    if (sentinels) return { ...namedServer, followsMaster: true }
    return cluster ? {} : singleServer(word => `${this.names.root}{${word}}`)
  }

  #listenToOne(connect: (told: ConnectionListener) => Connection) {
    const connection = connect({
      up: () => subscriber.restore(),
      down: error => {
        this.#hears = false
        subscriber.deafen()
        this.#broken(error)
      },
    })
    const subscriber = new Subscriber(connection, this.#clock, {
      message: (channel, text) => this.#message(channel, text),
      heard: () => {
        this.#beat.heard = this.#beat.sent
        this.#hears = true
        this.#changed()
        this.#listener.heard()
      },
    })
    return { connection, subscriber }
  }

  #listenToShards(outageTimeout: number): Shards {
    return new Shards(this.commands.redis as Cluster, this.#clock, outageTimeout, {
      message: (channel, text) => this.#message(channel, text),
      heard: channel => {
        this.#listener.heard(lockOfChannel(channel) ?? channel.slice(0, -this.#ownInbox.length))
      },
      down: error => this.#broken(error),
      whole: () => this.#changed(),
    })
  }

  get #ownInbox(): string {
    return this.names.inboxPrefix('') + this.ids.client
  }

  #message(channel: string, text: string): void {
    const lock = lockOfChannel(channel)
    if (lock !== undefined) {
      if (text.startsWith(ENTERED)) this.#listener.entered(lock, text.slice(ENTERED.length))
      else this.#listener.unlocked(lock, text.split(' ', 2)[1])
      return
    }
    const [word, id = '', token = ''] = text.split(' ', 3)
    if (word === 'beat') {
      // One of before says nothing of the last; one that was not sent yet is another's.
      if (Number(id) === this.#beat.sent) this.#beat.heard = this.#beat.sent
    } else if (word === 'lost') this.#listener.lost(id, Number(token))
    else if (word === 'handoff' || word === 'expiry') {
      // The rest is one name, whatever spaces it has.
      const { length } = `${word} ${id} ${token} `
      const lock = text.slice(length)
      if (!id.includes(',')) return this.#listener.granted(id, Number(token), word, lock)
      const tokens = token.split(',')
      for (const [i, each] of id.split(',').entries()) this.#listener.granted(each, Number(tokens[i]), word, lock)
    }
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
        // Not repeated: a beat that could not be sent says nothing about the way that messages take.
        this.commands.redis.publish(this.#ownInbox, `beat ${this.#beat.sent}`).then(
          listeners => this.#counted(listeners),
          () => {
            this.#beat.heard = this.#beat.sent
          },
        )
      }
    })
  }

  /** A beat has not come by the next. It may be in the socket, unread, because this process did not run. */
  #judge(sent: number): void {
    awake(this.#clock).after(UNREAD, () => {
      if (this.#beat.heard >= sent) return
      this.#beat.heard = sent
      this.#single?.connection.reset(new Error('messages no longer arrive'))
    })
  }

  /**
   * Nobody hears what is published where our commands go, so it is another server that we listen to: a replica, say,
   * which was the master. Through the replication our own messages come from there too; but where the scripts publish,
   * nobody listens, and they pass over our waiters.
   */
  #counted(listeners: number): void {
    if (listeners !== 0 || !this.#whole) return
    this.#beat.heard = this.#beat.sent
    this.#single?.connection.reset(new Error('messages come from a different server than replies'))
  }

  #warn(error: LockError): void {
    if (this.#warned.has(error.message)) return
    this.#warned.add(error.message)
    this.#listener.warned?.(error)
  }

  /** Another server is the master: whatever is connected now is connected to the wrong one. */
  #moved(): void {
    const reason = new Error('the sentinels have made a different server the master')
    for (const connection of this.#connections) connection.reset(reason)
  }

  /** Whether both ways are open: that of commands, and that of messages. */
  get #whole(): boolean {
    return this.commands.up && (this.#shards?.hears ?? this.#hears)
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

/**
 * Everything between a client and its Redis: one connection for scripts, one for messages.
 *
 * Messages, on channels that lua/ publishes to (all are hints, see wait/acquire.ts):
 *   inbox    "handoff|expiry <id> <token> <lock>"   the waiter <id> is the holder now
 *            "lost <id> <token> <lock>"             the hold <id> may have been taken away
 *            "beat <n>"                             our own, to ourselves: the way is open
 *   unlock   "free <client>", or anything            the lock is free; released by that client
 *
 * A subscriber cannot see that its connection is half-open, for it only listens. So while anything depends on messages
 * the client sends itself one every few seconds, through the whole way that a grant would take; if it has not come by
 * the next, the connection is torn down and made anew.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Settings } from '../options.ts'
import type { Channel, Via } from '../primitive.ts'
import { clientsOf, type RedisSource } from './clients.ts'
import { Connection } from './connection.ts'
import { newClientId } from './ids.ts'
import { Keys, lockOfChannel, unlockChannel } from './keys.ts'
import { Replication } from './replication.ts'
import { type Runner, Scripts } from './scripts.ts'
import { Subscriber } from './subscriber.ts'

export interface LinkListener {
  granted(id: string, token: number, via: Via, lock: string): void
  lost(id: string): void
  /** `by`: the client that released the lock, where it is known. */
  unlocked(key: string, by: string | undefined): void
  /** The connection for commands is gone, or there again. */
  down(error: Error): void
  up(): void
  /** Messages may have been missed, and come again from now on. */
  heard(): void
  /** For events: either connection is gone; both are there again. */
  disconnected(error: Error): void
  reconnected(): void
  /** Whether anybody depends on messages now. */
  busy(): boolean
}

/** Longest and shortest time between two messages to ourselves, in ms. */
const BEAT = { longest: 5_000, shortest: 500 }

export class Link {
  readonly clientId = newClientId()
  readonly keys: Keys
  readonly scripts: Scripts
  readonly commands: Connection
  /** Runs scripts whose effect replicas must have, where the settings ask for that. */
  readonly replicated: Runner | undefined
  readonly #confirmations: Connection | undefined
  readonly #subscriptions: Connection
  readonly #subscriber: Subscriber
  readonly #listener: LinkListener
  readonly #clock: Clock
  readonly #cluster: boolean
  readonly #beatEvery: number
  #beatTimer: Timer | undefined
  #beat = { sent: 0, heard: 0 }
  /** Every channel is subscribed on the present connection: "connected" alone is not "heard". */
  #hears = false
  #reported = false

  constructor(source: RedisSource, settings: Settings, clock: Clock, listener: LinkListener) {
    const clients = clientsOf(source)
    this.#listener = listener
    this.#clock = clock
    this.#cluster = clients.cluster
    this.keys = new Keys(clients.keyPrefix, settings.prefix, clients.cluster)
    this.#beatEvery = Math.min(BEAT.longest, Math.max(BEAT.shortest, settings.waiterTtl / 3))

    this.commands = new Connection(clients.make(), clock, settings.outageTimeout, {
      up: () => {
        this.#changed()
        listener.up()
      },
      down: error => {
        this.#broken(error)
        listener.down(error)
      },
    })
    this.#subscriptions = new Connection(clients.make(), clock, settings.outageTimeout, {
      up: () => this.#subscriber.restore(),
      down: error => {
        this.#hears = false
        this.#subscriber.deafen()
        this.#broken(error)
      },
    })
    this.#subscriber = new Subscriber(this.#subscriptions, clock, clients.cluster, {
      message: (channel, text) => this.#message(channel, text),
      heard: () => {
        this.#beat.heard = this.#beat.sent
        this.#hears = true
        this.#changed()
        listener.heard()
      },
    })
    this.scripts = new Scripts(this.commands, clients.cluster)
    if (!settings.replicas) return
    // Whether it is there is only told by what is asked of it.
    this.#confirmations = new Connection(clients.make(), clock, settings.outageTimeout, { up() {}, down() {} })
    const placeOf = (lock: string) => (clients.cluster ? lock : '')
    this.replicated = new Replication(this.#confirmations, this.scripts, settings.replicas, placeOf)
  }

  open(): void {
    this.commands.open()
    this.#subscriptions.open()
    this.#confirmations?.open()
    if (this.#cluster) return
    // For "lost": whoever holds a lock listens, not only who waits. Until it is heard, renewals notice the same.
    this.#subscriber.need(this.#ownInbox)?.catch(() => {})
    this.#armBeat()
  }

  hear(key: string, channel: Channel): Promise<void> | undefined {
    return this.#subscriber.need(this.#nameOf(key, channel))
  }

  drop(key: string, channel: Channel): void {
    this.#subscriber.drop(this.#nameOf(key, channel))
  }

  close(): void {
    this.#beatTimer?.cancel()
    this.#subscriber.close()
    this.#subscriptions.close()
    this.#confirmations?.close()
    this.commands.close()
  }

  get #ownInbox(): string {
    return this.keys.inboxPrefix('') + this.clientId
  }

  #nameOf(key: string, channel: Channel): string {
    const { lock } = this.keys.of(key)
    return channel === 'unlock' ? unlockChannel(lock) : this.keys.inboxPrefix(lock) + this.clientId
  }

  #message(channel: string, text: string): void {
    const lock = lockOfChannel(channel)
    const key = lock === undefined ? undefined : this.keys.keyOf(lock)
    if (key !== undefined) return this.#listener.unlocked(key, text.split(' ', 2)[1])
    const [, word, id, number, of] = /^(\w+) (\S+) ?(\d*) ?([\s\S]*)$/.exec(text) ?? []
    if (word === 'beat') this.#beat.heard = Math.max(this.#beat.heard, Number(id))
    else if (word === 'lost') this.#listener.lost(id!)
    else if (word === 'handoff' || word === 'expiry') this.#listener.granted(id!, Number(number), word, of!)
  }

  #armBeat(): void {
    this.#beatTimer = this.#clock.after(this.#beatEvery, () => {
      this.#armBeat()
      const { sent, heard } = this.#beat
      if (sent > heard && this.#subscriptions.up) {
        this.#beat.heard = sent
        this.#subscriptions.reset(new Error('messages do not arrive any more'))
      } else if (this.#whole && this.#listener.busy()) {
        this.#beat.sent += 1
        // Not repeated: a beat that could not be sent says nothing about the way that messages take.
        this.commands.redis.publish(this.#ownInbox, `beat ${this.#beat.sent}`).catch(() => {
          this.#beat.heard = this.#beat.sent
        })
      }
    })
  }

  /** Whether both ways are open: that of commands, and that of messages. */
  get #whole(): boolean {
    return this.commands.up && this.#hears
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

/**
 * The client's subscriptions: which channels its keys use, and on which server each channel is subscribed. A single
 * server has all channels (one-server.ts). In a cluster, a channel belongs to the slot of its lock (shards.ts), and the
 * slot may move to another master at any moment, because of a failover, a migration, or a new node. Whatever happens, a
 * channel is always in one of these states:
 *
 *       ┌────────── connection gone, or subscription ended by the server ───────────┐
 *       ▼                                                                           │
 *     sought ──▶ its server, as far as is known ──SUBSCRIBE──▶ confirmed ───────────┘
 *       ▲                                              │
 *       └─── which server has it is found out anew ◀───┴─ MOVED, or no connection
 *
 * A channel counts as subscribed only when the server has confirmed that on the current connection. Before, every
 * message on it is lost, even though the connection is up. If a channel was lost or has moved, messages may be missing
 * when it is confirmed again. So every waiter and hold that depends on it then reads its state from Redis (I4).
 *
 * Each channel has a SUBSCRIBE of its own. If one SUBSCRIBE named several channels and was cut off halfway, all later
 * confirmations would be assigned to the wrong channels.
 *
 * When the last user of a channel has left, the subscription is kept for a moment. Under contention, a key may lose its
 * last waiter and get a new one thousands of times a second. Without the delay, the client would unsubscribe and
 * subscribe again each time.
 */
import type { Clock, Timer } from '../clock.ts'
import { LockClosedError, LockConnectionError } from '../errors.ts'
import { WrongServer } from './refusals.ts'

/** How long unused channels are kept, in ms. */
const LINGER = 1_000
/** The first and the longest pause between searches for the servers of channels, in ms. */
const SEEK = { first: 50, longest: 1_000 }

/** A connection on which the messages of one server arrive. */
export interface MessageServer {
  readonly up: boolean
  /**
   * Resolves to true when the server has confirmed the subscription on the current connection, and to false if another
   * server has the channel. Rejects with LockConnectionError.
   */
  subscribe(channel: string): Promise<boolean>
  /** Sent only once: if the connection is lost, the subscription ends anyway. */
  unsubscribe(channel: string): void
  /**
   * Finds out whether messages on a channel that is subscribed still arrive. If they do not, the connection is made
   * again. Resolves to false if another server has the channel.
   */
  probe(channel: string): Promise<boolean>
}

export interface MessageServers {
  /** Returns the server that has the channel, as far as this client knows; undefined: it knows none. */
  serverOf(channel: string): MessageServer | undefined
  /** Finds out anew which server has which channel, and then calls `Subscriber.seek`. */
  refresh(): void
  /** Closes the connections to all servers but these. */
  keepOnly(used: ReadonlySet<MessageServer | undefined>): void
  close(): void
}

export interface SubscriberListener {
  /** The subscription to a channel is confirmed again. Before that, messages may have been lost. */
  onResumed(channel: string): void
  /** Every channel that was lost is confirmed again. */
  onWhole(): void
}

interface Subscription {
  readonly name: string
  users: number
  idleSince: number
  /** The server that has confirmed the subscription on its current connection. Undefined: no server has. */
  at: MessageServer | undefined
  /** The server that was asked to subscribe and has not answered yet. */
  asked: MessageServer | undefined
  /** Whether the subscription is not confirmed because of a connection that is not up, so messages may be lost. */
  missed: boolean
  /** The callers that wait until the subscription is confirmed. */
  need: Need | undefined
}

interface Need {
  readonly promise: Promise<void>
  done(error?: Error): void
}

export class Subscriber {
  readonly #clock: Clock
  readonly #listener: SubscriberListener
  readonly #servers: MessageServers
  readonly #channels = new Map<string, Subscription>()
  /** How many channels have `missed` set. */
  #missed = 0
  #search: Timer | undefined
  #pace = SEEK.first
  #sweep: Timer | undefined
  #closed = false

  constructor(clock: Clock, servers: (subscriber: Subscriber) => MessageServers, listener: SubscriberListener) {
    this.#clock = clock
    this.#listener = listener
    this.#servers = servers(this)
  }

  /** Whether no channel is lost. */
  get whole(): boolean {
    return this.#missed === 0
  }

  /**
   * Counts one more user of the channel. If the subscription is confirmed, returns undefined. Otherwise returns a promise
   * that resolves when it is confirmed, and rejects with LockConnectionError. Each call must be followed by one `drop`,
   * even if the promise rejects.
   */
  need(name: string): Promise<void> | undefined {
    if (this.#closed) return Promise.reject(new LockClosedError())
    let channel = this.#channels.get(name)
    if (!channel) {
      channel = { name, users: 0, idleSince: 0, at: undefined, asked: undefined, missed: false, need: undefined }
      this.#channels.set(name, channel)
      this.#setMissed(channel, !this.#servers.serverOf(name)?.up)
    }
    channel.users += 1
    if (channel.at) return undefined
    channel.need ??= newNeed()
    this.#find(channel)
    this.#armSearch()
    return channel.need.promise
  }

  drop(name: string): void {
    const channel = this.#channels.get(name)
    if (!channel || --channel.users > 0) return
    channel.idleSince = this.#clock.now()
    this.#armSweep()
  }

  /** Returns whether the channel is confirmed on its server's current connection. */
  isSubscribed(name: string): boolean {
    return this.#channels.get(name)?.at !== undefined
  }

  /** Probes each server with one of its channels. */
  probe(): void {
    const probed = new Set<MessageServer>()
    for (const channel of this.#channels.values()) {
      const { at, name } = channel
      if (!at || probed.has(at)) continue
      probed.add(at)
      const learn = (confirmed: boolean) => {
        if (!confirmed && channel.at === at) this.#lose(channel)
      }
      at.probe(name).then(learn, () => {})
    }
  }

  /** Looks for the server of each channel: another one may have it, or its server can be reached now. */
  seek(): void {
    for (const channel of this.#channels.values()) this.#find(channel)
    // If channels have moved, some servers may not be used any longer.
    this.#armSweep()
  }

  /** Subscribes again to the channels whose subscriptions on this server have ended. Returns whether there was one. */
  lost(server: MessageServer, hasEnded = (_name: string) => true): boolean {
    let lost = false
    for (const channel of this.#channels.values()) {
      if (channel.asked === server && !server.up && !channel.at) this.#setMissed(channel, true)
      if (channel.at !== server || !hasEnded(channel.name)) continue
      lost = true
      this.#lose(channel)
    }
    return lost
  }

  close(): void {
    this.#closed = true
    this.#search?.cancel()
    this.#sweep?.cancel()
    for (const { need } of this.#channels.values()) need?.done(new LockClosedError())
    this.#channels.clear()
    this.#servers.close()
  }

  /** Subscribes to the channel on its server. Does nothing if this is already done or under way. */
  #find(channel: Subscription): void {
    const { name } = channel
    const server = this.#closed ? undefined : this.#servers.serverOf(name)
    if (!server || channel.at === server || channel.asked === server) return
    channel.asked = server
    server.subscribe(name).then(
      confirmed => {
        const wanted = channel.asked === server && this.#channels.get(name) === channel
        if (channel.asked === server) channel.asked = undefined
        if (!confirmed) this.#refresh()
        else if (wanted) this.#found(channel, server)
        else this.#leave(name, server)
      },
      (error: LockConnectionError) => {
        if (channel.asked !== server) return
        channel.asked = undefined
        const wrong = error instanceof WrongServer
        const refusal = wrong ? error : new LockConnectionError(`cannot subscribe to ${name}`, error.cause ?? error)
        channel.need?.done(refusal)
        channel.need = undefined
      },
    )
  }

  #found(channel: Subscription, server: MessageServer): void {
    const { name, at: before, missed } = channel
    channel.at = server
    this.#setMissed(channel, false)
    channel.need?.done()
    channel.need = undefined
    if (before) this.#leave(name, before)
    if (missed || before) this.#listener.onResumed(name)
  }

  #lose(channel: Subscription): void {
    channel.at = undefined
    this.#setMissed(channel, true)
    this.#find(channel)
    this.#armSearch()
  }

  #setMissed(channel: Subscription, missed: boolean): void {
    if (channel.missed === missed) return
    channel.missed = missed
    this.#missed += missed ? 1 : -1
    if (this.#missed === 0) this.#listener.onWhole()
  }

  /** Ends the subscription to a channel on this server, unless the client has subscribed to it there again. */
  #leave(name: string, server: MessageServer): void {
    const channel = this.#channels.get(name)
    if (channel?.at !== server && channel?.asked !== server) server.unsubscribe(name)
  }

  #refresh(): void {
    if (this.#closed) return
    this.#armSearch()
    this.#servers.refresh()
  }

  /** Starts the timer for the next search: for the server of every channel whose subscription is not confirmed. */
  #armSearch(): void {
    if (this.#search || this.#closed) return
    this.#search = this.#clock.after(this.#pace, () => {
      this.#search = undefined
      const sought = [...this.#channels.values()].filter(channel => !channel.at)
      this.#pace = sought.length > 0 ? Math.min(SEEK.longest, this.#pace * 1.5) : SEEK.first
      if (sought.length === 0) return
      for (const channel of sought) this.#find(channel)
      if (sought.some(channel => !channel.asked?.up)) this.#servers.refresh()
      this.#armSearch()
    })
  }

  #armSweep(): void {
    if (this.#sweep || this.#closed) return
    this.#sweep = this.#clock.after(LINGER, () => {
      this.#sweep = undefined
      const now = this.#clock.now()
      const used = new Set<MessageServer | undefined>()
      let lingering = false
      for (const channel of this.#channels.values()) {
        const idle = channel.users === 0
        if (!idle || now - channel.idleSince < LINGER) {
          used.add(channel.at).add(channel.asked)
          lingering ||= idle
        } else {
          this.#channels.delete(channel.name)
          this.#setMissed(channel, false)
          channel.at?.unsubscribe(channel.name)
        }
      }
      this.#servers.keepOnly(used)
      if (lingering) this.#armSweep()
    })
  }
}

function newNeed(): Need {
  let done!: (error?: Error) => void
  const promise = new Promise<void>((resolve, reject) => {
    done = error => (error ? reject(error) : resolve())
  })
  promise.catch(() => {})
  return { promise, done }
}

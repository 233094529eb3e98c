/**
 * The client's subscriptions in a cluster. Each channel of sharded pub/sub belongs to a slot. The client has a
 * connection to each master that has the slot of at least one channel in use.
 *
 * The slot of a channel may move to another master at any moment, because of a failover, a migration, or a new node.
 * From then on, messages are published on the other master. Whatever happens to its slot, a channel is always in one of
 * these states:
 *
 *       ┌────────── connection gone, or subscription ended by the server ───────────┐
 *       ▼                                                                           │
 *     sought ──▶ owner by the table of slots ──SSUBSCRIBE──▶ confirmed: heard ──────┘
 *       ▲                                           │
 *       └─── the table is read again ◀──────────────┴─ MOVED, or no connection
 *
 * As on a single server, a channel counts as heard only when the server has confirmed the subscription on the current
 * connection. If a channel was lost or has moved, messages may be missing when it is heard again. So every waiter and
 * hold that depends on the channel then reads its state from Redis (I4).
 *
 * ioredis has sharded subscribers of its own, which are not used for three reasons. They resubscribe, but do not report
 * whether and when that succeeded. If the slot table was out of date, they do not subscribe at all. And they do not
 * detect a half-open connection.
 */
import type { Cluster } from 'ioredis'
import type { Clock, Timer } from '../clock.ts'
import { LockClosedError, LockConnectionError } from '../errors.ts'
import { hostAndPort } from './address.ts'
import { Shard } from './shard.ts'
import { slotOf } from './slot.ts'

/** How long unused channels and connections are kept, in ms. */
const LINGER = 1_000
/** The first and the longest pause between searches for the owner of a slot, in ms. */
const SEEK = { first: 50, longest: 1_000 }

interface ShardChannel {
  readonly name: string
  readonly slot: number
  users: number
  idleSince: number
  /** The server that has confirmed the subscription on its current connection. Undefined: no server has. */
  at: Shard | undefined
  /** The server that was asked to subscribe and has not answered yet. */
  asked: Shard | undefined
  /** Whether the subscription was confirmed before and is not confirmed now, so messages may be lost. */
  missed: boolean
  need: Need | undefined
}

/** The callers that wait until the subscription to a channel is confirmed. */
interface Need {
  readonly begun: number
  readonly promise: Promise<void>
  done(error?: Error): void
}

export interface ShardEars {
  message(channel: string, text: string): void
  /** Called when the subscription to a channel is confirmed again. Before that, messages may have been lost. */
  heard(channel: string): void
  /** Called when messages on some channels no longer arrive, because a connection is gone. */
  down(error: Error): void
  /** Called when every channel that was confirmed before is confirmed again. */
  whole(): void
  /** Returns whether a node refuses a password that the cluster has accepted before (`Connection.isOutdated`). */
  isOutdated(error: unknown): error is Error
  /** Called when these slots have another master than before. */
  moved(slots: ReadonlySet<number>): void
}

export class Shards {
  readonly #cluster: Cluster
  readonly #clock: Clock
  readonly #outageTimeout: number
  readonly #ears: ShardEars
  readonly #channels = new Map<string, ShardChannel>()
  readonly #shards = new Map<string, Shard>()
  /** The master of each slot, by the last slot table. */
  #masters: readonly (string | undefined)[] = []
  /** How many channels have `missed` set. */
  #missed = 0
  #seek: Timer | undefined
  #pace = SEEK.first
  #sweep: Timer | undefined
  #closed = false
  #lastError: Error | undefined

  /** `cluster` provides the slot table and the nodes. Messages arrive on separate connections. */
  constructor(cluster: Cluster, clock: Clock, outageTimeout: number, ears: ShardEars) {
    this.#cluster = cluster
    this.#clock = clock
    this.#outageTimeout = outageTimeout
    this.#ears = ears
    cluster.on('refresh', () => this.#findAll())
    cluster.on('refresh', () => this.#compare())
  }

  /** Whether every subscription that was once confirmed is confirmed now. */
  get hears(): boolean {
    return this.#missed === 0
  }

  /**
   * Counts one more user of the channel. Like `Subscriber.need`, returns undefined if the subscription is confirmed,
   * otherwise a promise that resolves when it is confirmed.
   */
  need(name: string): Promise<void> | undefined {
    let channel = this.#channels.get(name)
    if (!channel) {
      channel = {
        name,
        slot: slotOf(name),
        users: 0,
        idleSince: 0,
        at: undefined,
        asked: undefined,
        missed: false,
        need: undefined,
      }
      this.#channels.set(name, channel)
    }
    channel.users += 1
    if (channel.at) return undefined
    channel.need ??= newNeed(this.#clock.now())
    this.#find(channel)
    this.#armSeek()
    return channel.need.promise
  }

  drop(name: string): void {
    const channel = this.#channels.get(name)
    if (!channel || --channel.users > 0) return
    channel.idleSince = this.#clock.now()
    this.#armSweep()
  }

  /** Returns whether the channel is confirmed on its server's current connection. */
  isHeard(name: string): boolean {
    return this.#channels.get(name)?.at !== undefined
  }

  /**
   * Subscribes again to one channel of each server. An answer shows that the connection is alive and that the slot is
   * still on that server. If there is no answer, `Connection` connects again.
   */
  probe(): void {
    const probed = new Set<Shard>()
    for (const channel of this.#channels.values()) {
      const { at } = channel
      if (!at || probed.has(at)) continue
      probed.add(at)
      const learn = (confirmed: boolean) => {
        if (!confirmed && channel.at === at) this.#lose(channel)
      }
      at.subscribe(channel.name).then(learn, () => {})
    }
  }

  close(): void {
    this.#closed = true
    this.#seek?.cancel()
    this.#sweep?.cancel()
    for (const { need } of this.#channels.values()) need?.done(new LockClosedError())
    this.#channels.clear()
    for (const shard of this.#shards.values()) shard.close()
    this.#shards.clear()
  }

  /**
   * Subscribes to the channel on the server that has its slot now. Does nothing if this is already done or under way.
   */
  #find(channel: ShardChannel): void {
    const shard = this.#ownerOf(channel.slot)
    if (!shard || channel.at === shard || channel.asked === shard) return
    channel.asked = shard
    shard.subscribe(channel.name).then(
      confirmed => {
        const wanted = channel.asked === shard && this.#channels.get(channel.name) === channel
        if (channel.asked === shard) channel.asked = undefined
        if (!confirmed) this.#refresh()
        else if (wanted) this.#found(channel, shard)
        else this.#leave(channel.name, shard)
      },
      (error: LockConnectionError) => {
        if (channel.asked !== shard) return
        channel.asked = undefined
        if (this.#ears.isOutdated(error.cause)) {
          this.#lastError = error.cause
          this.#armSeek()
        } else this.#giveUp(channel, error.cause ?? error)
      },
    )
  }

  #found(channel: ShardChannel, shard: Shard): void {
    const { at: before, missed } = channel
    channel.at = shard
    this.#setMissed(channel, false)
    channel.need?.done()
    channel.need = undefined
    if (before) this.#leave(channel.name, before)
    if (missed || before) this.#ears.heard(channel.name)
  }

  #lose(channel: ShardChannel): void {
    channel.at = undefined
    this.#setMissed(channel, true)
    this.#find(channel)
    this.#armSeek()
  }

  #setMissed(channel: ShardChannel, missed: boolean): void {
    if (channel.missed === missed) return
    channel.missed = missed
    this.#missed += missed ? 1 : -1
    if (this.#missed === 0) this.#ears.whole()
  }

  #giveUp(channel: ShardChannel, cause: unknown): void {
    channel.need?.done(new LockConnectionError(`cannot subscribe to ${channel.name}`, cause))
    channel.need = undefined
  }

  /** Ends the subscription to a channel on `shard`, unless the client has subscribed to it there again. */
  #leave(name: string, shard: Shard): void {
    const channel = this.#channels.get(name)
    if (channel?.at !== shard && channel?.asked !== shard) shard.leave(name)
  }

  /**
   * Returns the owner of a slot according to the slot table, which may be out of date. Undefined: the table has no
   * owner for the slot, or ioredis has dropped the owner.
   */
  #ownerOf(slot: number): Shard | undefined {
    const node = this.#cluster.slots[slot]?.[0]
    if (node === undefined || this.#closed) return undefined
    const known = this.#shards.get(node)
    if (known) return known
    const member = this.#cluster.nodes().find(({ options }) => hostAndPort(options) === node)
    if (!member) return undefined
    const shard = new Shard(member, node, this.#clock, this.#outageTimeout, {
      message: (channel, text) => {
        if (!this.#closed) this.#ears.message(channel, text)
      },
      down: (shard, error) => this.#down(shard, error),
      reduced: shard => this.#reduced(shard),
    })
    this.#shards.set(node, shard)
    return shard
  }

  #down(shard: Shard, error: Error): void {
    if (this.#closed) return
    this.#lastError = error
    const channels = [...this.#channels.values()]
    const lost = channels.filter(channel => channel.at === shard)
    for (const channel of lost) this.#lose(channel)
    if (lost.length > 0) this.#ears.down(error)
    if (channels.some(channel => channel.asked === shard)) this.#refresh()
  }

  #reduced(shard: Shard): void {
    const { channels } = shard
    for (const channel of this.#channels.values()) {
      if (channel.at === shard && !channels.has(channel.name)) this.#lose(channel)
    }
    this.#refresh()
  }

  /**
   * Reads the slot table again. If this succeeds, ioredis emits 'refresh', and `#findAll` looks for the new owners. If
   * it fails, the timer starts the next search.
   */
  #refresh(): void {
    this.#armSeek()
    if (!this.#closed && this.#cluster.status === 'ready') this.#cluster.refreshSlotsCache(() => {})
  }

  #findAll(): void {
    for (const channel of this.#channels.values()) this.#find(channel)
    // If slots have moved to other servers, some connections may not be needed any longer. The sweep closes them.
    this.#armSweep()
  }

  #compare(): void {
    const before = this.#masters
    this.#masters = Array.from(this.#cluster.slots, nodes => nodes?.[0])
    const moved = new Set<number>()
    for (const [slot, master] of this.#masters.entries()) if (before[slot] && before[slot] !== master) moved.add(slot)
    if (moved.size > 0 && !this.#closed) this.#ears.moved(moved)
  }

  /**
   * Starts the timer for the next search. A search looks for the owner of every channel whose subscription is not
   * confirmed. Callers that have waited for `outageTimeout` are rejected.
   */
  #armSeek(): void {
    if (this.#seek || this.#closed) return
    this.#seek = this.#clock.after(this.#pace, () => {
      this.#seek = undefined
      const sought = [...this.#channels.values()].filter(channel => !channel.at)
      this.#pace = sought.length > 0 ? Math.min(SEEK.longest, this.#pace * 1.5) : SEEK.first
      if (sought.length === 0) return
      const now = this.#clock.now()
      for (const channel of sought) {
        this.#find(channel)
        if (channel.need && now - channel.need.begun >= this.#outageTimeout)
          this.#giveUp(channel, this.#lastError ?? new Error('no node of the cluster has confirmed the subscription'))
      }
      if (sought.some(channel => !channel.asked?.up)) this.#refresh()
      this.#armSeek()
    })
  }

  #armSweep(): void {
    if (this.#sweep || this.#closed) return
    this.#sweep = this.#clock.after(LINGER, () => {
      this.#sweep = undefined
      const now = this.#clock.now()
      const used = new Set<Shard | undefined>()
      let lingering = false
      for (const channel of this.#channels.values()) {
        const idle = channel.users === 0
        if (!idle || channel.need || now - channel.idleSince < LINGER) {
          used.add(channel.at).add(channel.asked)
          lingering ||= idle
        } else {
          this.#channels.delete(channel.name)
          this.#setMissed(channel, false)
          channel.at?.leave(channel.name)
        }
      }
      for (const shard of this.#shards.values()) {
        if (used.has(shard)) continue
        this.#shards.delete(shard.node)
        shard.close()
      }
      if (lingering) this.#armSweep()
    })
  }
}

function newNeed(begun: number): Need {
  let done!: (error?: Error) => void
  const promise = new Promise<void>((resolve, reject) => {
    done = error => (error ? reject(error) : resolve())
  })
  promise.catch(() => {})
  return { begun, promise, done }
}

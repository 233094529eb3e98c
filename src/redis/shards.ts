/**
 * The client's ears in a cluster: a connection to each master in whose slots somebody listens.
 *
 * A channel of sharded pub/sub belongs to its slot, and the slot may go to another master at any moment: a failover, a
 * migration, a new node. Messages are then published there. So each channel is somewhere in this circle, whatever
 * becomes of its slot:
 *
 *       ┌────────── connection gone, or subscription ended by the server ───────────┐
 *       ▼                                                                           │
 *     sought ──▶ owner by the table of slots ──SSUBSCRIBE──▶ confirmed: heard ──────┘
 *       ▲                                           │
 *       └─── the table is asked for anew ◀──────────┴─ MOVED, or no connection
 *
 * As on a single server, only a confirmation on the present connection counts; and whoever depends on a channel that had
 * been lost, or that is heard at another place than before, looks at the truth as soon as it is heard (I4).
 *
 * ioredis has sharded subscribers of its own. They subscribe again by themselves, but do not tell whether and when that
 * succeeded; they never do where the table was not new yet; a half-open connection is not noticed.
 */
import type { Cluster } from 'ioredis'
import type { Clock, Timer } from '../clock.ts'
import { LockClosedError, LockConnectionError } from '../errors.ts'
import { Shard } from './shard.ts'
import { slotOf } from './slot.ts'

/** How long channels and connections are kept that nobody needs, in ms. */
const LINGER = 1_000
/** First and longest pause between looks for the owner of a slot, in ms. */
const SEEK = { first: 50, longest: 1_000 }

interface ShardChannel {
  readonly name: string
  readonly slot: number
  users: number
  idleSince: number
  /** Where it is heard, on the present connection. */
  at: Shard | undefined
  /** Who is being asked for it. */
  asked: Shard | undefined
  /** It has been heard, and is not now: messages may be missing. */
  missed: boolean
  need: Need | undefined
}

/** Those who wait until a channel is heard. */
interface Need {
  readonly begun: number
  readonly promise: Promise<void>
  done(error?: Error): void
}

export interface ShardEars {
  message(channel: string, text: string): void
  /** The channel is confirmed again, after at least one message may have been lost. */
  heard(channel: string): void
  /** Channels that were heard are not, because their connection is gone. */
  down(error: Error): void
  /** Every channel that was heard is heard again. */
  whole(): void
}

export class Shards {
  readonly #cluster: Cluster
  readonly #clock: Clock
  readonly #outageTimeout: number
  readonly #ears: ShardEars
  readonly #channels = new Map<string, ShardChannel>()
  readonly #shards = new Map<string, Shard>()
  /** How many channels are `missed`. */
  #missed = 0
  #seek: Timer | undefined
  #pace = SEEK.first
  #sweep: Timer | undefined
  #closed = false
  #lastError: Error | undefined

  /** `cluster` knows the slots; messages do not come by it. */
  constructor(cluster: Cluster, clock: Clock, outageTimeout: number, ears: ShardEars) {
    this.#cluster = cluster
    this.#clock = clock
    this.#outageTimeout = outageTimeout
    this.#ears = ears
    cluster.on('refresh', () => this.#findAll())
  }

  /** Whether every channel that has been heard still is. */
  get hears(): boolean {
    return this.#missed === 0
  }

  /** As `Subscriber.need`. */
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

  /** As `Subscriber.isHeard`. */
  isHeard(name: string): boolean {
    return this.#channels.get(name)?.at !== undefined
  }

  /**
   * Asks each server once more for one of its channels. The answer shows that the connection is alive and that the slot
   * is still there; if there is none, `Connection` makes the connection anew.
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

  /** Has the channel subscribed where its slot is now, unless that is so or under way. */
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
        this.#giveUp(channel, error.cause ?? error)
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

  /** Ends a subscription, unless it has come to be needed again. */
  #leave(name: string, shard: Shard): void {
    const channel = this.#channels.get(name)
    if (channel?.at !== shard && channel?.asked !== shard) shard.leave(name)
  }

  /** By the table, which may be out of date. Undefined: it does not say, or ioredis has given up that node. */
  #ownerOf(slot: number): Shard | undefined {
    const node = this.#cluster.slots[slot]?.[0]
    if (node === undefined || this.#closed) return undefined
    const known = this.#shards.get(node)
    if (known) return known
    const member = this.#cluster.nodes().find(({ options }) => `${options.host}:${options.port}` === node)
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

  /** Asks for the table of slots; 'refresh' follows, or the next look. */
  #refresh(): void {
    this.#armSeek()
    if (!this.#closed && this.#cluster.status === 'ready') this.#cluster.refreshSlotsCache(() => {})
  }

  #findAll(): void {
    for (const channel of this.#channels.values()) this.#find(channel)
    // Connections that have lost their slots are not needed any more.
    this.#armSweep()
  }

  /** While a channel is not heard its owner is looked for, and those who wait for it are given up in time. */
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
          this.#giveUp(channel, this.#lastError ?? new Error('no node has confirmed the subscription'))
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

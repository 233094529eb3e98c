/**
 * The masters of a cluster, as servers of messages. Each channel of sharded pub/sub belongs to a slot. The client has a
 * connection to each master that has the slot of at least one channel in use.
 *
 * ioredis has sharded subscribers of its own, which are not used for three reasons. They resubscribe, but do not report
 * whether and when that succeeded. If the slot table was out of date, they do not subscribe at all. And they do not
 * detect a half-open connection.
 */
import type { Cluster } from 'ioredis'
import type { Clock } from '../clock.ts'
import { hostAndPort } from './address.ts'
import { type MessageListener, readerFor } from './messages.ts'
import { Shard } from './shard.ts'
import { slotOf } from './slot.ts'
import type { MessageServer, MessageServers, Subscriber } from './subscriber.ts'

export interface ShardsListener {
  readonly messages: MessageListener
  /** Messages on some channels no longer arrive, because a connection is gone. */
  onDown(error: Error): void
  /** These slots have another master than before. */
  onMoved(slots: ReadonlySet<number>): void
  /** Returns whether the cluster has accepted the password before (`Uplink.accepted`). */
  isAccepted(): boolean
}

export class Shards implements MessageServers {
  readonly #cluster: Cluster
  readonly #clock: Clock
  readonly #outageTimeout: number
  readonly #subscriber: Subscriber
  readonly #listener: ShardsListener
  readonly #shards = new Map<string, Shard>()
  /** The master of each slot, by the last slot table. */
  #masters: readonly (string | undefined)[] = []
  #closed = false

  /** `cluster` provides the slot table and the nodes. Messages arrive on separate connections. */
  constructor(cluster: Cluster, clock: Clock, outageTimeout: number, subscriber: Subscriber, listener: ShardsListener) {
    this.#cluster = cluster
    this.#clock = clock
    this.#outageTimeout = outageTimeout
    this.#subscriber = subscriber
    this.#listener = listener
    cluster.on('refresh', () => subscriber.seek())
    cluster.on('refresh', () => this.#compare())
  }

  /** By the slot table, which may be out of date. Undefined: the slot has no master, or ioredis has dropped it. */
  serverOf(channel: string): Shard | undefined {
    const node = this.#cluster.slots[slotOf(channel)]?.[0]
    if (node === undefined || this.#closed) return undefined
    const known = this.#shards.get(node)
    if (known) return known
    const member = this.#cluster.nodes().find(({ options }) => hostAndPort(options) === node)
    if (!member) return undefined
    const listener = this.#listener
    const read = readerFor(listener.messages)
    const shard = new Shard(member, node, this.#clock, this.#outageTimeout, listener.isAccepted(), {
      onMessage: (channel, text) => {
        if (!this.#closed) read(channel, text)
      },
      onUp: () => this.#subscriber.seek(),
      onDown: error => {
        if (this.#subscriber.lost(shard)) listener.onDown(error)
        this.refresh()
      },
      onReduced: () => {
        const { channels } = shard
        this.#subscriber.lost(shard, name => !channels.has(name))
        this.refresh()
      },
    })
    this.#shards.set(node, shard)
    return shard
  }

  /** If this succeeds, ioredis emits 'refresh'. If it fails, the subscriber's next search comes here again. */
  refresh(): void {
    if (!this.#closed && this.#cluster.status === 'ready') this.#cluster.refreshSlotsCache(() => {})
  }

  keepOnly(used: ReadonlySet<MessageServer | undefined>): void {
    for (const shard of this.#shards.values()) {
      if (used.has(shard)) continue
      this.#shards.delete(shard.node)
      shard.close()
    }
  }

  close(): void {
    this.#closed = true
    this.keepOnly(new Set())
  }

  #compare(): void {
    const before = this.#masters
    this.#masters = Array.from(this.#cluster.slots, nodes => nodes?.[0])
    const moved = new Set<number>()
    for (const [slot, master] of this.#masters.entries()) if (before[slot] && before[slot] !== master) moved.add(slot)
    if (moved.size > 0 && !this.#closed) this.#listener.onMoved(moved)
  }
}

/**
 * A Redis Cluster of local processes, assembled by commands. Tests may break it.
 *
 * Nodes learn of a change at different times, and until then they give clients different answers. So every wait ends
 * only when all nodes report the new state.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { findServerSource, type RunningServer } from '../../../local-redis/index.ts'
import { eventually } from '../time.ts'
import { type Peer, peersOf } from './cluster-nodes.ts'
import { withSecondPort } from './second-port.ts'

/** Time limit in ms. On two busy cores, six servers need long to start, to copy data and to elect a master. */
const PATIENCE = 30_000
const SLOTS = 16_384

const settings = [
  ['--cluster-enabled', 'yes'],
  ['--cluster-config-file', 'nodes.conf'],
  // 3 s is so long that no node takes a busy node for dead.
  ['--cluster-node-timeout', '3000'],
  // A replica may take over, however long it was disconnected. A replica never moves to another master.
  ['--cluster-replica-validity-factor', '0'],
  ['--cluster-allow-replica-migration', 'no'],
  ['--repl-diskless-sync-delay', '0'],
].flat()

export interface Node {
  /** The id by which the other nodes know this node. */
  readonly id: string
  readonly server: RunningServer
  /** A connection that has all rights and reconnects automatically. */
  readonly redis: Redis
  readonly busPort: number
  readonly dir: string
}

export class RedisCluster {
  readonly nodes: Node[] = []
  readonly #args: readonly string[]
  readonly #dead = new Set<Node>()

  private constructor(args: readonly string[]) {
    this.#args = args
  }

  /**
   * Starts three masters, each with a replica that is in sync: nodes 0 to 2 are masters, nodes 3 to 5 their replicas in
   * the same order.
   */
  static async start(args: readonly string[] = []): Promise<RedisCluster> {
    const cluster = new RedisCluster(args)
    try {
      const launches = await Promise.allSettled(Array.from({ length: 6 }, () => cluster.#launch()))
      for (const launch of launches) if (launch.status === 'rejected') throw launch.reason
      await cluster.#assemble()
      return cluster
    } catch (error) {
      await cluster.stop()
      throw error
    }
  }

  /** The addresses at which a client finds the nodes. */
  get addresses(): { host: string; port: number }[] {
    return this.nodes.map(({ server }) => ({ host: '127.0.0.1', port: server.port }))
  }

  /** Returns the slot's master, once all running nodes name the same master. */
  async masterOf(slot: number): Promise<Node> {
    let owners: (string | undefined)[] = []
    await until(async () => {
      owners = (await this.#views()).map(peers => peers.find(peer => peer.master && peer.serves(slot))?.id)
      return owners[0] !== undefined && owners.every(id => id === owners[0])
    })
    return this.#node(owners[0] as string)
  }

  /** Returns a replica of this master, even if the master has died. */
  async replicaOf(master: Node): Promise<Node> {
    const [peers = []] = await this.#views()
    const replica = peers.find(peer => peer.masterId === master.id && !peer.failed)
    if (!replica) throw new Error('this master has no replica')
    return this.#node(replica.id)
  }

  /** Waits until the master's replica is in sync. From then on, the master refuses to send anything to it. */
  async loseWrites({ redis }: Node): Promise<void> {
    await redis.wait(1, PATIENCE)
    await redis.acl('SETUSER', 'default', '-psync', '-sync', '-replconf')
    await redis.client('KILL', 'TYPE', 'REPLICA')
  }

  /** Kills the node, like a crash. */
  async kill(node: Node): Promise<void> {
    this.#dead.add(node)
    await node.server.kill()
  }

  /**
   * Restarts the nodes without their data, in their old roles in the cluster. Resolves when all nodes agree on these
   * roles.
   */
  async restart(...nodes: readonly Node[]): Promise<void> {
    for (const node of nodes) {
      await node.server.restart()
      this.#dead.delete(node)
    }
    await this.untilWhole()
  }

  /** Makes the replica the master, in coordination with the present master. */
  async failOver(replica: Node): Promise<void> {
    for (let attempt = 0; attempt < 3; attempt++) {
      await replica.redis.cluster('FAILOVER')
      // The other nodes may be too busy to vote in time. Redis then abandons the failover after 5 s.
      const done = eventually(async () => /role:master/.test(await replica.redis.info('replication')), 7_000)
      if (await done.catch(() => false)) break
    }
    await this.untilMaster(replica)
  }

  /** Resolves when all running nodes report that this one is a master with slots. */
  async untilMaster({ id }: Node): Promise<void> {
    await this.#untilAll(peers => peers.some(peer => peer.id === id && peer.master && peer.size > 0))
  }

  /** Resolves when all nodes run and are connected, all slots are served, and every replica is in sync. */
  async untilWhole(): Promise<void> {
    await this.#untilAll(peers => {
      const served = peers.reduce((sum, peer) => sum + (peer.master ? peer.size : 0), 0)
      const sound = peers.every(peer => peer.linked && !peer.failed)
      return served === SLOTS && peers.length === this.nodes.length && sound
    })
    for (const { redis } of this.nodes) {
      await until(async () => /cluster_state:ok/.test(String(await redis.cluster('INFO'))))
    }
    const [peers = []] = await this.#views()
    // Shortly after its start, a replica reports that it is a master without slots. So rely on what the first node
    // reports about the others.
    for (const { id, masterId } of peers) {
      const { redis } = this.#node(id)
      if (masterId) await until(async () => /master_link_status:up/.test(await redis.info('replication')))
    }
  }

  /**
   * Moves a slot one key at a time, which is how a slot moves if atomic slot migration is not used. During the move,
   * some of a lock's keys may be on the old node and some on the new node. `during` runs after the first key has moved.
   */
  async moveSlot(slot: number, to: Node, during: () => Promise<void> = async () => {}): Promise<void> {
    const from = await this.masterOf(slot)
    await to.redis.cluster('SETSLOT', slot, 'IMPORTING', from.id)
    await from.redis.cluster('SETSLOT', slot, 'MIGRATING', to.id)
    for (let moved = 0; ; moved++) {
      if (moved === 1) await during()
      const [key] = (await from.redis.cluster('GETKEYSINSLOT', slot, 1)) as string[]
      if (key === undefined) break
      await from.redis.migrate('127.0.0.1', to.server.port, key, 0, PATIENCE)
    }
    await to.redis.cluster('SETSLOT', slot, 'NODE', to.id)
    // If a client has written a key since the last check, the old node refuses to give up the slot, because the slot
    // still has keys. So try again.
    await until(() => this.#letGo(slot, from, to))
    for (const { redis, id } of this.nodes) {
      if (id !== from.id && id !== to.id) await redis.cluster('SETSLOT', slot, 'NODE', to.id).catch(() => {})
    }
    await this.masterOf(slot)
  }

  /** Adds a master without slots. */
  async addMaster(): Promise<Node> {
    const node = await this.#launch()
    await this.#meet([node])
    return node
  }

  async stop(): Promise<void> {
    for (const { redis } of this.nodes) redis.disconnect()
    await Promise.all(this.nodes.map(({ server }) => server.kill().then(() => server.stop())))
    await Promise.all(this.nodes.map(({ dir }) => rm(dir, { recursive: true, force: true })))
  }

  async #launch(): Promise<Node> {
    const dir = await mkdtemp(join(tmpdir(), 'baton-cluster-'))
    const source = await findServerSource()
    try {
      const { server, busPort } = await withSecondPort(async busPort => {
        const args = [...settings, '--cluster-port', String(busPort), ...this.#args]
        return { server: await source.start({ args, dir }), busPort }
      })
      const redis = new Redis(server.port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: null })
      redis.on('error', () => {})
      const node = { id: String(await redis.cluster('MYID')), server, redis, busPort, dir }
      this.nodes.push(node)
      return node
    } catch (error) {
      await rm(dir, { recursive: true, force: true })
      throw error
    }
  }

  async #assemble(): Promise<void> {
    const masters = this.nodes.slice(0, 3)
    const share = Math.ceil(SLOTS / masters.length)
    for (const [i, { redis }] of this.nodes.entries()) await redis.cluster('SET-CONFIG-EPOCH', i + 1)
    for (const [i, { redis }] of masters.entries()) {
      await redis.cluster('ADDSLOTSRANGE', i * share, Math.min(SLOTS, (i + 1) * share) - 1)
    }
    await this.#meet(this.nodes.slice(1))
    for (const [i, { redis }] of this.nodes.slice(3).entries()) {
      await redis.cluster('REPLICATE', (masters[i] as Node).id)
    }
    await this.#untilAll(peers => peers.filter(peer => peer.masterId !== undefined).length === masters.length)
    await this.untilWhole()
  }

  /** Introduces the nodes to the first one. Resolves when all nodes know each other. */
  async #meet(nodes: readonly Node[]): Promise<void> {
    const { redis } = this.nodes[0] as Node
    for (const { server, busPort } of nodes) await redis.cluster('MEET', '127.0.0.1', server.port, busPort)
    await this.#untilAll(peers => peers.length === this.nodes.length && !peers.some(peer => peer.failed))
  }

  async #letGo(slot: number, from: Node, to: Node): Promise<boolean> {
    for (const key of (await from.redis.cluster('GETKEYSINSLOT', slot, 100)) as string[]) {
      await from.redis.migrate('127.0.0.1', to.server.port, key, 0, PATIENCE)
    }
    return from.redis.cluster('SETSLOT', slot, 'NODE', to.id).then(
      () => true,
      () => false,
    )
  }

  #node(id: string): Node {
    const node = this.nodes.find(node => node.id === id)
    if (!node) throw new Error(`no node has the id ${id}`)
    return node
  }

  /** Gets the list of all nodes from each running node. Resolves when `check` returns true for each of these lists. */
  async #untilAll(check: (peers: readonly Peer[]) => boolean): Promise<void> {
    await until(async () => (await this.#views()).every(check))
  }

  #views(): Promise<Peer[][]> {
    const running = this.nodes.filter(node => !this.#dead.has(node))
    return Promise.all(running.map(async ({ redis }) => peersOf(await redis.cluster('NODES'))))
  }
}

function until(check: () => Promise<boolean>): Promise<boolean> {
  return eventually(check, PATIENCE)
}

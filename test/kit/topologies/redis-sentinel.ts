/**
 * A master and a replica under three sentinels, all processes of this machine.
 *
 *      sentinels ── watch; two must agree ──▶ master ──▶ replica
 *
 * Sentinels usually discover each other by messages that they send every two seconds. Here each sentinel is configured
 * with the others from the start. The intervals of the sentinels are shortened, so that a failover takes only a second
 * or two.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis, type RedisOptions } from 'ioredis'
import { findServerSource, type RunningServer, type StartOptions } from '../../../local-redis/index.ts'
import { freePort } from '../../../local-redis/port.ts'
import { eventually } from '../time.ts'

export const masterName = 'locks'

/** Time limit in ms, enough for elections, full copies and restarts on a busy machine. */
const PATIENCE = 20_000
/**
 * Settings of redis.conf with which a full copy starts at once, instead of waiting for other replicas that may want the
 * same copy.
 */
const quickCopies = ['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0']
/**
 * Sentinel's intervals, in ms. They are short, because a failover has to wait for some of them: a sentinel first sends
 * several pings, and it promotes only a replica that has answered INFO within the last few ping periods.
 */
const quickSentinels = ['info-period', '250', 'publish-period', '250', 'ask-period', '100', 'ping-period', '500']

export class RedisSentinel {
  /** The original master and replica. */
  readonly data: RunningServer[] = []
  readonly sentinels: RunningServer[] = []
  readonly #connections = new Map<RunningServer, Redis>()
  #folder = ''

  private constructor() {}

  /** Starts all servers. `args` go to both data servers. A server that is silent for `downAfter` ms counts as dead. */
  static async start(args: readonly string[] = [], downAfter = 1_000): Promise<RedisSentinel> {
    const all = new RedisSentinel()
    try {
      await all.#startData([...quickCopies, ...args])
      await all.#startSentinels(downAfter)
      await all.settled()
      return all
    } catch (error) {
      await all.stop()
      throw error
    }
  }

  /** The options with which a client finds the master. */
  get options(): RedisOptions {
    const sentinels = this.sentinels.map(({ port }) => ({ host: '127.0.0.1', port }))
    return { sentinels, name: masterName }
  }

  /** Returns the server that this sentinel considers the master. */
  async master(sentinel = this.#first): Promise<RunningServer> {
    const address = await this.direct(sentinel).call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName)
    return this.data.find(server => server.port === Number((address as string[])[1]))!
  }

  get #awake(): RunningServer[] {
    return this.sentinels.filter(sentinel => signal(sentinel, 0))
  }

  get #first(): RunningServer {
    return this.#awake[0] as RunningServer
  }

  /** Resolves when all running sentinels name the server other than `old` as master, and that server accepts writes. */
  async movedFrom(old: RunningServer): Promise<RunningServer> {
    const other = this.data.find(server => server !== old)!
    await eventually(async () => {
      const masters = await Promise.all(this.#awake.map(sentinel => this.master(sentinel)))
      return masters.every(master => master === other)
    }, PATIENCE)
    await eventually(async () => /role:master/.test(await this.direct(other).info('replication')), PATIENCE)
    return other
  }

  /**
   * Makes the sentinels promote the replica while both servers are healthy. Resolves when all sentinels agree on the
   * new master.
   */
  async failover(): Promise<RunningServer> {
    const old = await this.master()
    // A sentinel refuses a failover until it knows that the replica is healthy, and it checks this only from time to
    // time. So ask again until it accepts.
    const ask = () => this.direct(this.#first).call('SENTINEL', 'FAILOVER', masterName)
    await eventually(() => ask().catch(() => false), PATIENCE)
    return this.movedFrom(old)
  }

  /** Resolves when each sentinel sees a master, a replica that follows, and both other sentinels. */
  async settled(): Promise<void> {
    await eventually(async () => {
      const seen = await Promise.all(this.sentinels.map(sentinel => this.#sees(sentinel)))
      return seen.every(Boolean)
    }, PATIENCE)
  }

  /** Resolves when the replica has everything that the master has written up to this call. */
  async inSync(): Promise<void> {
    const master = await this.master()
    const replica = this.data.find(server => server !== master)!
    const written = await offset(this.direct(master), 'master_repl_offset')
    await eventually(async () => (await offset(this.direct(replica), 'slave_repl_offset')) >= written, PATIENCE)
  }

  /**
   * Sets how long, in ms, a former master that comes back after a failover may still act as a master. The sentinels
   * make it a replica after four publish periods.
   */
  async linger(ms: number): Promise<void> {
    const times = ['publish-period', String(ms / 4)]
    await Promise.all(this.sentinels.map(sentinel => this.#hurry(sentinel, times)))
  }

  /** Waits until the replica is in sync. From then on, the present master refuses to send anything to the replica. */
  async loseWrites(): Promise<void> {
    await this.inSync()
    const master = this.direct(await this.master())
    await master.acl('SETUSER', 'default', '-psync', '-sync', '-replconf')
    await master.client('KILL', 'TYPE', 'REPLICA')
  }

  /** Restarts dead servers, continues stopped ones, and resolves when all servers work together again. */
  async mend(): Promise<void> {
    for (const server of [...this.data, ...this.sentinels]) {
      if (signal(server, 'SIGCONT')) continue
      if (this.data.includes(server)) await server.restart()
      else await this.restart(server)
    }
    await Promise.all(this.sentinels.map(sentinel => this.#hurry(sentinel)))
    await this.settled()
  }

  /** Kills a sentinel, like a crash, and restarts it with its saved configuration. */
  async restart(sentinel: RunningServer): Promise<void> {
    await sentinel.kill()
    await sentinel.restart()
    await this.#hurry(sentinel)
  }

  async stop(): Promise<void> {
    for (const redis of this.#connections.values()) redis.disconnect()
    await Promise.all([...this.sentinels, ...this.data].map(server => server.stop()))
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true })
  }

  /** Returns a connection to this server. The connection has all rights and reconnects automatically. */
  direct(server: RunningServer): Redis {
    return this.#connections.get(server)!
  }

  async #startData(args: readonly string[]): Promise<void> {
    const master = await this.#launch(this.data, { args })
    await this.#launch(this.data, { args: ['--replicaof', `127.0.0.1 ${master.port}`, ...args] })
  }

  async #startSentinels(downAfter: number): Promise<void> {
    this.#folder = await mkdtemp(join(tmpdir(), 'baton-sentinel-'))
    const [master, replica] = this.data as [RunningServer, RunningServer]
    const known: { id: string; port: number }[] = []
    for (let i = 0; i < 3; i++) known.push({ id: randomBytes(20).toString('hex'), port: await freePort() })
    const start = async ({ id, port }: { id: string; port: number }) => {
      const others = known.filter(other => other.id !== id)
      const config = join(this.#folder, `${port}.conf`)
      const lines = [
        `sentinel myid ${id}`,
        `sentinel monitor ${masterName} 127.0.0.1 ${master.port} 2`,
        `sentinel down-after-milliseconds ${masterName} ${downAfter}`,
        `sentinel failover-timeout ${masterName} 2000`,
        `sentinel known-replica ${masterName} 127.0.0.1 ${replica.port}`,
        ...others.map(other => `sentinel known-sentinel ${masterName} 127.0.0.1 ${other.port} ${other.id}`),
      ]
      await writeFile(config, `${lines.join('\n')}\n`)
      await this.#hurry(await this.#launch(this.sentinels, { port, config, dir: this.#folder, args: ['--sentinel'] }))
    }
    await Promise.all(known.map(start))
  }

  /**
   * Sets a sentinel's intervals, which only a debug command can change. Sentinels before 7.0 do not have this command,
   * so their intervals stay longer.
   */
  async #hurry(sentinel: RunningServer, times = quickSentinels): Promise<void> {
    await this.direct(sentinel)
      .call('SENTINEL', 'DEBUG', ...times)
      .catch(() => {})
  }

  async #launch(to: RunningServer[], options: StartOptions): Promise<RunningServer> {
    const server = await (await findServerSource()).start(options)
    to.push(server)
    const redis = new Redis(server.url, { retryStrategy: () => 50, enableReadyCheck: false })
    redis.on('error', () => {})
    this.#connections.set(server, redis)
    return server
  }

  async #sees(sentinel: RunningServer): Promise<boolean> {
    const redis = this.direct(sentinel)
    const [masters, replicas, others] = (await Promise.all([
      redis.call('SENTINEL', 'MASTERS'),
      redis.call('SENTINEL', 'REPLICAS', masterName),
      redis.call('SENTINEL', 'SENTINELS', masterName),
    ])) as Report[][]
    const [master, replica] = [fields(masters![0]), fields(replicas![0])]
    return (
      master['flags'] === 'master' &&
      replica['flags'] === 'slave' &&
      replica['master-link-status'] === 'ok' &&
      replicas!.length === 1 &&
      others!.map(fields).filter(other => other['flags'] === 'sentinel').length === this.sentinels.length - 1
    )
  }
}

/** What a sentinel reports about one server: a map in RESP3, a flat list in RESP2. */
type Report = readonly string[] | Readonly<Record<string, string>>

function fields(report: Report | undefined): Readonly<Record<string, string>> {
  if (!Array.isArray(report)) return (report ?? {}) as Readonly<Record<string, string>>
  return Object.fromEntries(Array.from({ length: report.length / 2 }, (_, i) => [report[2 * i], report[2 * i + 1]]))
}

/** Sends the signal. Returns false if the process no longer exists. */
function signal({ pid }: RunningServer, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid as number, name)
  } catch {
    return false
  }
}

async function offset(redis: Redis, name: string): Promise<number> {
  return Number(new RegExp(`${name}:(\\d+)`).exec(await redis.info('replication'))?.[1])
}

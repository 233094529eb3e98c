/**
 * The servers of a quorum, each behind a proxy, with a method for each fault that a server can suffer. The methods
 * `freeze`, `resume` and `step` need servers that run as processes on this machine. They do not work for a server in a
 * container. The tests of test/contract also run with containers, so they do not use these methods.
 *
 *   client ──(with `linked`: its own frame proxies)─────> proxy i ──> server i
 *   at(i), redis(i): without the proxy ──────────────────────────────────┘
 */
import { rm } from 'node:fs/promises'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, expect, onTestFinished } from 'vitest'
import { findServerSource } from '../../local-redis/index.ts'
import { type ClientOptions, LockClient } from '../../src/index.ts'
import { ADMIN, Admin, keysWith } from './admin.ts'
import { FaultProxy } from './fault-proxy.ts'
import { type FrameProxy, frameProxy } from './proxies.ts'
import { test as base, client } from './redis.ts'
import { SteppedClock } from './stepped-clock.ts'
import { lastingFolder } from './temp.ts'
import { eventually } from './time.ts'
import { persistsEveryWrite, type QuorumServer, startQuorumServer } from './topologies/quorum-server.ts'

export interface SceneOptions {
  /** Number of servers: 3, 5 or 7. Default: 3. */
  readonly servers?: number
  /** Arguments of each server. By default, a server persists every write. */
  readonly args?: readonly string[]
  /** Whether each server has its own time of day. Needs gcc. */
  readonly stepped?: boolean
}

/**
 * Arguments of a server that persists nothing. After a restart, such a server may have forgotten a hold. So clients
 * ignore its grants until it has been up for longer than any lease lasts.
 */
export const forgetful = ['--appendonly', 'no'] as const

/** One of the servers, with its proxy and the connections to it. */
interface Member {
  readonly server: QuorumServer
  readonly proxy: FaultProxy
  readonly clock: SteppedClock | undefined
  /** A connection that bypasses the proxy, and reconnects automatically. */
  readonly redis: Redis
  readonly looking: LockClient
  state: 'running' | 'frozen' | 'dead'
}

/** Starts the servers of a quorum. They are stopped after the test. */
export async function quorumScene(options: SceneOptions = {}): Promise<QuorumScene> {
  const scene = await QuorumScene.start(options)
  onTestFinished(() => scene.stop())
  return scene
}

/** Declares a test, which receives a quorum of three servers, as `quorumScene` makes it. */
export const test = base.extend('scene', () => quorumScene())

/** Starts one quorum of each size, for all tests of a file. After each test, `mend` ends the faults of all servers. */
export function sharedScenes(sizes: readonly number[]): ReadonlyMap<number, QuorumScene> {
  const scenes = new Map<number, QuorumScene>()
  beforeAll(async () => {
    await Promise.all(sizes.map(async servers => scenes.set(servers, await QuorumScene.start({ servers }))))
  })
  afterEach(async () => {
    for (const scene of scenes.values()) await scene.mend()
  })
  afterAll(async () => {
    for (const scene of scenes.values()) await scene.stop()
  })
  return scenes
}

export class QuorumScene {
  readonly #members: Member[] = []
  readonly #folders: string[] = []

  /** Starts a scene that lasts for several tests. The caller must stop it. */
  static async start({ servers = 3, args = persistsEveryWrite, stepped = false }: SceneOptions = {}) {
    const scene = new QuorumScene()
    try {
      await findServerSource()
      // A stepped server inherits its clock from environment variables of this process, and these can name only one
      // clock at a time. So stepped servers start one after another.
      if (stepped) for (let i = 0; i < servers; i++) await scene.#launch(args, true)
      else await Promise.all(Array.from({ length: servers }, () => scene.#launch(args, false)))
      return scene
    } catch (error) {
      await scene.stop()
      throw error
    }
  }

  get size(): number {
    return this.#members.length
  }

  get majority(): number {
    return Math.floor(this.size / 2) + 1
  }

  /** The indices of the largest minority of servers: the last one of 3, the last two of 5, the last three of 7. */
  get minority(): number[] {
    return Array.from({ length: this.size - this.majority }, (_, i) => this.majority + i)
  }

  /** The source for a lock client: the URLs of the servers' proxies. */
  get source(): string[] {
    return this.#members.map(({ proxy }) => proxy.url)
  }

  /** Makes a client of the quorum, or of other servers. The client is closed after the test. */
  client(options: ClientOptions = {}, source = this.source): LockClient {
    return client(options, source)
  }

  clients(count: number): LockClient[] {
    return Array.from({ length: count }, () => this.client())
  }

  /**
   * Makes a client that has its own proxy to each server. With these proxies, a test can drop or delay a single
   * command, reply or message of this client.
   */
  async linked(options: ClientOptions = {}): Promise<{ locks: LockClient; links: FrameProxy[] }> {
    const links = await Promise.all(this.source.map(frameProxy))
    return {
      locks: client(
        options,
        links.map(({ url }) => url),
      ),
      links,
    }
  }

  /** Returns a client of this server alone, to inspect the server's state. */
  at(i: number): LockClient {
    return this.#member(i).looking
  }

  redis(i: number): Redis {
    return this.#member(i).redis
  }

  /** Kills the server and cuts its connections, like a crash of its machine. */
  async kill(i: number): Promise<void> {
    const member = this.#member(i)
    member.state = 'dead'
    await member.server.kill()
  }

  /** Restarts the server without its data, whether it still runs or was killed. */
  async restartEmpty(i: number): Promise<void> {
    const member = this.#member(i)
    await member.server.restart()
    member.state = 'running'
  }

  /** Restarts the server with the data that it has written. */
  async resume(i: number): Promise<void> {
    const member = this.#member(i)
    await member.server.resume()
    member.state = 'running'
  }

  /** Freezes the server like a machine that hangs: its connections stay open. */
  freeze(i: number): void {
    this.#signal(i, 'SIGSTOP')
    this.#member(i).state = 'frozen'
  }

  thaw(i: number): void {
    this.#signal(i, 'SIGCONT')
    this.#member(i).state = 'running'
  }

  /** Makes the server unreachable: connections are refused. It keeps its data. */
  away(i: number): void {
    const { proxy } = this.#member(i)
    proxy.refuse()
    proxy.cut()
  }

  back(i: number): void {
    this.#member(i).proxy.accept()
  }

  /** Holds back all bytes in one direction (up: to the server) or in both. They arrive after `heal`, as with TCP. */
  partition(i: number, direction: 'up' | 'down' | 'both' = 'both'): void {
    const { proxy } = this.#member(i)
    for (const each of ['up', 'down'] as const) if (direction === each || direction === 'both') proxy.hold(each)
  }

  /** Discards all bytes in this direction. The connections stay half-open until `healAnew` cuts them. */
  lose(i: number, direction: 'up' | 'down'): void {
    this.#member(i).proxy.swallow(direction)
  }

  /** Delays everything by this many ms, in each direction. */
  delay(i: number, ms: number): void {
    this.#member(i).proxy.delay(ms)
  }

  /** Ends `partition` and `delay`. */
  heal(i: number): void {
    this.#member(i).proxy.heal()
  }

  /** Ends `lose` and cuts the connections, because a connection that has lost bytes is unusable. */
  healAnew(i: number): void {
    const { proxy } = this.#member(i)
    proxy.cut()
    proxy.heal()
  }

  /** Sets this server's time of day to the true time plus `ms`, in one step. */
  async step(i: number, ms: number): Promise<void> {
    const { clock, redis } = this.#member(i)
    if (!clock) throw new Error('these servers have no clocks of their own: ask for `stepped`')
    clock.set(ms)
    const [seconds] = await redis.time()
    expect(Math.abs(Number(seconds) * 1_000 - clock.now())).toBeLessThan(5_000)
  }

  /** Returns the uptime that the server reports, in whole seconds. */
  async uptime(i: number): Promise<number> {
    return Number(/uptime_in_seconds:(\d+)/.exec(await this.redis(i).info('server'))?.[1])
  }

  /** Returns for each server the id of the hold that it stores; undefined if it stores no hold or does not run. */
  holders(key: string): Promise<(string | undefined)[]> {
    const idOf = async ({ state, looking }: Member) =>
      state === 'running' ? (await looking.inspect(key)).holders[0]?.id : undefined
    return Promise.all(this.#members.map(idOf))
  }

  /**
   * Resolves when all running servers store this hold. The caller may get its lease earlier, because the replies of a
   * majority suffice.
   */
  async heldEverywhere(key: string, id: string, limit?: number): Promise<void> {
    const running = this.#members.map(({ state }) => (state === 'running' ? id : undefined))
    await eventually(async () => {
      const holders = await this.holders(key)
      return running.every((wanted, i) => holders[i] === wanted)
    }, limit).catch(async cause => {
      throw new Error(`${id} is not held everywhere, but ${await this.holders(key)}`, { cause })
    })
  }

  /** Resolves when the fair queue has this many waiters on each running server. */
  async queuedEverywhere(key: string, waiters: number): Promise<void> {
    const running = this.#members.filter(({ state }) => state === 'running')
    await eventually(async () => {
      const states = await Promise.all(running.map(({ looking }) => looking.inspect(key)))
      return states.every(state => state.waiters.length === waiters)
    })
  }

  /**
   * Waits until the lock is free on each running server and has no waiters; fails if that takes too long. The lock's
   * key may remain for a while, because it stores the last token issued. It expires on its own.
   */
  async nothingLeft(key: string, limit?: number): Promise<void> {
    for (const { state, redis, looking } of this.#members) {
      if (state !== 'running') continue
      await eventually(async () => {
        const { locked, holds, waiters } = await looking.inspect(key)
        return !locked && holds === 0 && waiters.length === 0
      }, limit)
      await eventually(async () => (await keysWith(redis, `{${key}}:q`)).length === 0, limit)
      for (const name of await keysWith(redis, key)) expect(await redis.pttl(name), name).not.toBe(-1)
    }
  }

  /** Returns an `Admin` that inspects the running servers. */
  admin(): Admin {
    return new Admin(...this.#members.filter(({ state }) => state === 'running').map(({ redis }) => redis))
  }

  /** Makes all servers run, be reachable, and have the true time. Restarts killed servers without their data. */
  async mend(): Promise<void> {
    for (const [i, { state, proxy, clock }] of this.#members.entries()) {
      if (state === 'frozen') this.thaw(i)
      if (state === 'dead') await this.restartEmpty(i)
      clock?.set(0)
      proxy.accept()
      proxy.heal()
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map(({ looking }) => looking.close()))
    for (const { redis } of this.#members) redis.disconnect()
    await Promise.all(this.#members.map(({ server, proxy }) => Promise.all([server.stop(), proxy.close()])))
    for (const { clock } of this.#members) clock?.close()
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true })
  }

  async #launch(args: readonly string[], stepped: boolean): Promise<void> {
    const clock = stepped ? await this.#newClock() : undefined
    const server = await startQuorumServer(args, launch => (clock ? clock.under(launch) : launch()))
    const proxy = await FaultProxy.open(server.url)
    const own = { host: '127.0.0.1', port: server.port, connectionName: ADMIN }
    const redis = new Redis({ ...own, enableReadyCheck: false, retryStrategy: () => 20, maxRetriesPerRequest: null })
    redis.on('error', () => {})
    const looking = new LockClient(own, { outageTimeout: 2_000 })
    this.#members.push({ server, proxy, clock, redis, looking, state: 'running' })
  }

  async #newClock(): Promise<SteppedClock> {
    const folder = await lastingFolder()
    this.#folders.push(folder)
    return SteppedClock.make(folder)
  }

  #member(i: number): Member {
    const member = this.#members[i]
    if (!member) throw new Error(`there are ${this.size} servers, and none is number ${i}`)
    return member
  }

  /** Sends a signal to a server, which must be a process on this machine. */
  #signal(i: number, name: NodeJS.Signals): void {
    const { pid } = this.#member(i).server
    if (pid === undefined) throw new Error('this server is no process of this machine')
    process.kill(pid, name)
  }
}

/** The servers of a run. The difference of two snapshots of a server's counters shows what happened between them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { now } from './clock.ts'

/** The time between two checks of the incoming traffic by `settle`, in ms. */
const lookEvery = 50
/** If fewer bytes than this arrive between two checks, the server is quiet. */
const quiet = 1_000

/**
 * Commands that take less time than this, in µs, are not recorded. A script takes longer, and the commands that it calls
 * take less. If these were recorded too, the script would take longer.
 */
const shortest = 10

export interface Snapshot {
  /** When the snapshot was taken, in monotonic ms. This is the middle between the request and the reply. */
  readonly at: number
  /** User and system time of the server's process in µs. */
  readonly cpu: number
  readonly bytes: number
  readonly memory: number
  readonly calls: ReadonlyMap<string, number>
  /**
   * For each command, the total time in µs that INFO commandstats reports. The time of a script includes the time of
   * the commands that the script calls.
   */
  readonly usec: ReadonlyMap<string, number>
}

/** Returns the sum of several servers' counters. */
export function together(snapshots: readonly Snapshot[]): Snapshot {
  const total = (of: (snapshot: Snapshot) => number) => snapshots.reduce((sum, snapshot) => sum + of(snapshot), 0)
  const each = (of: (snapshot: Snapshot) => ReadonlyMap<string, number>) => {
    const names = new Set(snapshots.flatMap(snapshot => [...of(snapshot).keys()]))
    return new Map([...names].map(name => [name, total(snapshot => of(snapshot).get(name) ?? 0)]))
  }
  return {
    at: total(({ at }) => at) / snapshots.length,
    cpu: total(({ cpu }) => cpu),
    bytes: total(({ bytes }) => bytes),
    memory: total(({ memory }) => memory),
    calls: each(({ calls }) => calls),
    usec: each(({ usec }) => usec),
  }
}

export class Server {
  /** A time at which the server was already running, in monotonic ms. */
  readonly since = now()
  #frozen = false

  private constructor(
    readonly url: string,
    readonly redis: Redis,
    readonly version: string,
    /** Whether the server was started for this run. The benchmark may empty only such a server. */
    readonly own: boolean,
    /** The server's process, if the server was started for this run on this machine. */
    private readonly pid: number | undefined,
  ) {}

  /** Connects to a server. Rejects if the server cannot be reached. */
  static async reach(url: string, own: boolean, pid?: number): Promise<Server> {
    const redis = new Redis(url, { lazyConnect: true, connectTimeout: 5_000, maxRetriesPerRequest: 2 })
    let reason: Error | undefined
    redis.on('error', error => {
      reason = error
    })
    try {
      await redis.connect()
      const info = await redis.info('server')
      const [, version = '?'] = /^redis_version:(\S+)/m.exec(info) ?? []
      const [, valkey] = /^valkey_version:(\S+)/m.exec(info) ?? []
      return new Server(url, redis, valkey ? `Valkey ${valkey}` : `Redis ${version}`, own, pid)
    } catch (error) {
      redis.disconnect()
      throw reason ?? error
    }
  }

  async snapshot(): Promise<Snapshot> {
    const before = now()
    const text = await this.redis.info('all')
    const at = (before + now()) / 2
    const number = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1] ?? Number.NaN)
    const calls = new Map<string, number>()
    const usec = new Map<string, number>()
    for (const [, name = '', count, time] of text.matchAll(/^cmdstat_([^:|]+)(?:\|[^:]+)?:calls=(\d+),usec=(\d+)/gm)) {
      calls.set(name, (calls.get(name) ?? 0) + Number(count))
      usec.set(name, (usec.get(name) ?? 0) + Number(time))
    }
    return {
      at,
      cpu: (number('used_cpu_sys') + number('used_cpu_user')) * 1e6,
      bytes: number('total_net_input_bytes') + number('total_net_output_bytes'),
      memory: number('used_memory'),
      calls,
      usec,
    }
  }

  /** Records the time of each script call from now on. Changes the settings of the server, so it has to be `own`. */
  async recordScripts(): Promise<void> {
    await this.redis.config('SET', 'slowlog-max-len', 100_000, 'slowlog-log-slower-than', shortest)
    await this.redis.slowlog('RESET')
  }

  /** Returns the times of the script that was called most often since `recordScripts`, in µs. Ends the recording. */
  async scriptTimes(): Promise<number[]> {
    await this.redis.config('SET', 'slowlog-log-slower-than', -1)
    const times = new Map<string, number[]>()
    for (const [, , usec, [name, sha]] of (await this.redis.slowlog('GET', -1)) as [0, 0, number, string[]][]) {
      if (name?.toLowerCase() !== 'evalsha') continue
      const of = times.get(sha!) ?? []
      times.set(sha!, of)
      of.push(usec)
    }
    return [...times.values()].sort((a, b) => b.length - a.length)[0] ?? []
  }

  get canFreeze(): boolean {
    return this.pid !== undefined
  }

  /** Suspends the server's process: connections stay open, but the server answers nothing until `thaw`. */
  freeze(): void {
    if (this.pid === undefined) throw new Error('this server was not started for the run, so it cannot be frozen')
    process.kill(this.pid, 'SIGSTOP')
    this.#frozen = true
  }

  thaw(): void {
    if (this.#frozen) process.kill(this.pid!, 'SIGCONT')
    this.#frozen = false
  }

  /** Removes a trial's keys: all keys if the server was started for this run, otherwise keys with this namespace. */
  async clear(namespace: string): Promise<void> {
    if (this.own) {
      await this.redis.flushall()
      return
    }
    for await (const keys of this.redis.scanStream({ match: `*${namespace}*`, count: 1_000 })) {
      if (keys.length > 0) await this.redis.unlink(...(keys as string[]))
    }
  }

  /** Returns the addresses of all clients, in the form that MONITOR shows. */
  async clients(): Promise<Set<string>> {
    const list = String(await this.redis.client('LIST'))
    return new Set([...list.matchAll(/ addr=(\S+)/g)].map(([, address]) => address!))
  }

  /** Waits `least` ms, and then until the server is quiet. Ends after `limit` ms even if the server is not quiet. */
  async settle(least: number, limit: number): Promise<void> {
    const deadline = now() + limit
    await sleep(least)
    let before = await this.#received()
    while (now() < deadline) {
      await sleep(lookEvery)
      const received = await this.#received()
      if (received - before < quiet) return
      before = received
    }
  }

  async #received(): Promise<number> {
    return Number(/^total_net_input_bytes:(\d+)/m.exec(await this.redis.info('stats'))?.[1])
  }

  close(): void {
    this.redis.disconnect()
  }
}

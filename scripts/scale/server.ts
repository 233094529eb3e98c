/** Starts servers for the run, and reads their counters. */
import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { Server, type Snapshot } from '../../benchmarks/harness/server.ts'
import { findServerSource, type RunningServer } from '../../local-redis/index.ts'
import type { Longest } from './figures.ts'

/** The longest time for which a script call may occupy the server, in µs. */
const TOO_LONG = 5_000
const SLOTS = 16_384

export interface OwnServer extends AsyncDisposable {
  readonly running: RunningServer
  readonly server: Server
}

/** Whether the last server that was started has priority over everything else on the machine. */
export let goesFirst = false

/**
 * Gives the server priority, and returns whether that succeeded. Without priority, SLOWLOG would include the time in
 * which other programs use the core. Priority requires Linux, and root.
 */
function preferred(pid: number | undefined): boolean {
  return pid !== undefined && spawnSync('chrt', ['--all-tasks', '--fifo', '--pid', '1', String(pid)]).status === 0
}

export async function startServer(...args: string[]): Promise<OwnServer> {
  const source = await findServerSource()
  const running = await source.start({ args: ['--maxclients', '15000', '--enable-debug-command', 'yes', ...args] })
  const server = await Server.reach(running.url, true)
  goesFirst = preferred(running.pid)
  return {
    running,
    server,
    [Symbol.asyncDispose]: () => {
      server.close()
      return running.stop()
    },
  }
}

/** Masters that share all slots. */
export interface OwnCluster extends AsyncDisposable {
  readonly url: string
  readonly servers: readonly Server[]
}

export async function startCluster(masters: number): Promise<OwnCluster> {
  const settings = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']
  const own = await Promise.all(Array.from({ length: masters }, () => startServer(...settings)))
  const [first] = own as [OwnServer]
  const share = Math.ceil(SLOTS / masters)
  for (const [i, { server, running }] of own.entries()) {
    const { redis } = server
    await redis.cluster('SET-CONFIG-EPOCH', i + 1)
    await redis.cluster('ADDSLOTSRANGE', i * share, Math.min(SLOTS, (i + 1) * share) - 1)
    if (i > 0) await first.server.redis.cluster('MEET', '127.0.0.1', running.port)
  }
  const servers = own.map(({ server }) => server)
  for (const { redis } of servers) {
    while (!/cluster_state:ok/.test(String(await redis.cluster('INFO')))) await sleep(100)
  }
  return {
    url: first.running.url,
    servers,
    async [Symbol.asyncDispose]() {
      for (const server of own) await server[Symbol.asyncDispose]()
    },
  }
}

/** Returns how long each script call during the action took, in µs, in ascending order. */
export async function scriptTimes({ redis }: Server, action: () => Promise<unknown>): Promise<number[]> {
  await redis.config('SET', 'slowlog-max-len', '1000000', 'slowlog-log-slower-than', '0')
  await redis.slowlog('RESET')
  await action()
  await redis.config('SET', 'slowlog-log-slower-than', '-1')
  const log = (await redis.slowlog('GET', -1)) as [number, number, number, string[]][]
  await redis.slowlog('RESET')
  return log
    .filter(([, , , args]) => /^eval/i.test(args[0]!))
    .map(([, , micros]) => micros)
    .sort((a, b) => a - b)
}

/** Starts to watch script calls. The returned function returns the longest call since `watchScripts` was called. */
export async function watchScripts(server: Server): Promise<() => Promise<Longest>> {
  const { redis } = server
  await redis.config('SET', 'slowlog-max-len', '100000', 'slowlog-log-slower-than', '500')
  await redis.slowlog('RESET')
  const before = scriptCalls(await server.snapshot())
  return async () => {
    const calls = scriptCalls(await server.snapshot()) - before
    const log = (await redis.slowlog('GET', -1)) as [number, number, number, string[]][]
    const times = log.filter(([, , , args]) => /^eval/i.test(args[0]!)).map(([, , micros]) => micros)
    const tooLong = times.filter(micros => micros > TOO_LONG).length
    return { micros: times.reduce((most, micros) => Math.max(most, micros), 0), calls, tooLong }
  }
}

function scriptCalls({ calls }: Snapshot): number {
  return (calls.get('evalsha') ?? 0) + (calls.get('eval') ?? 0)
}

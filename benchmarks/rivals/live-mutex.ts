/**
 * live-mutex keeps its locks in a broker process, not in Redis. The first worker creates a folder and starts the
 * broker:
 *
 *     worker that creates the folder ── spawn ──▶ live-mutex-broker: listens, then writes `address` into the folder
 *     every worker ◀─────── reads `address` ────── when no client is connected any longer, removes the folder and ends
 *
 * The folder's name is derived from the trial's namespace, so it is shared by the workers of this trial only. A trial
 * may kill the worker that started the broker. So the broker does not end when that worker ends.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loader, programFile } from '../../local-redis/package-root.ts'
import type { Rival, Setting } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

/** Where the broker listens. */
export type Address = { readonly host: string; readonly port: number } | { readonly udsPath: string }

// The package live-mutex is not a development dependency, so the compiler has no declarations of it.
interface Library {
  Client: new (options: Address & { ttl?: number; lockRequestTimeout: number }) => Client
}
interface Client {
  readonly emitter: NodeJS.EventEmitter
  ensure(): Promise<unknown>
  acquire(key: string): Promise<{ key: string; id: string }>
  release(key: string, id: string): Promise<unknown>
  close(): void
}

/**
 * How long a request waits for the lock, in ms: the longest time that live-mutex accepts. By default, a request would
 * give up after three attempts of 3 s.
 */
const longestWait = 800_000
/** How long the broker may take to start, in ms. */
const patience = 15_000

const program = programFile('benchmarks/rivals/live-mutex-broker')

function liveMutexOver(transport: 'tcp' | 'socket', name: string, note: string): Rival {
  return {
    name,
    kind: 'rival',
    fair: true,
    package: 'live-mutex',
    note,
    runtime: 'node',
    async missing() {
      // The install script of live-mutex downloads a shell script that live-mutex does not need. So the suggested
      // command skips install scripts.
      return (await notInstalled('live-mutex'))?.replace('npm install', 'npm install --no-save --ignore-scripts')
    },
    async open(setting) {
      // The main file of live-mutex would also load the broker, and the broker catches all uncaught exceptions of its
      // process. So only the client is loaded.
      const { Client } = await load<Library>('live-mutex/dist/client.js')
      const address = await brokerOf(setting, transport)
      const { lease } = setting
      const client = new Client({
        ...address,
        lockRequestTimeout: longestWait,
        ...(lease !== undefined && { ttl: lease }),
      })
      client.emitter.on('warning', () => {}) // without a listener, live-mutex prints each warning
      await client.ensure()
      return {
        contender: () => ({
          async acquire(key) {
            const { id } = await client.acquire(key)
            return () => client.release(key, id)
          },
        }),
        close: async () => client.close(),
      }
    },
  }
}

/** Returns the address of this trial's broker, and starts the broker if necessary. */
async function brokerOf({ namespace, url }: Setting, transport: string): Promise<Address> {
  const trial = createHash('sha256').update(`${url} ${namespace} ${transport}`).digest('hex').slice(0, 16)
  const folder = join(tmpdir(), `baton-live-mutex-${trial}`)
  if (await madeNow(folder)) startBroker(folder, transport)
  const end = performance.now() + patience
  while (performance.now() < end) {
    const text = await readFile(join(folder, 'address'), 'utf8').catch(() => undefined)
    if (text !== undefined) return JSON.parse(text) as Address
    await sleep(20)
  }
  throw new Error(`the broker of live-mutex did not start within ${patience / 1000} s`)
}

async function madeNow(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { mode: 0o700 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function startBroker(folder: string, transport: string): void {
  spawn(process.execPath, [...loader, program, folder, transport], {
    // Packages for the broker are looked up from this folder. If this program runs from source, the broker needs tsx,
    // which is installed beside the sources. If this program runs from the build, the broker needs live-mutex, which
    // may be installed in the current folder.
    cwd: loader.length > 0 ? import.meta.dirname : process.cwd(),
    stdio: 'ignore',
    detached: true,
  }).unref()
}

export const liveMutex = liveMutexOver(
  'tcp',
  'live-mutex',
  'Uses its own broker process in memory instead of Redis, so --rtt does not apply. Over TCP (its default). A request waits for up to 800 s instead of 9 s.',
)

export const liveMutexSocket = liveMutexOver(
  'socket',
  'live-mutex-socket',
  'Uses its own broker process in memory instead of Redis, so --rtt does not apply. Over a Unix socket, which it recommends on one machine.',
)

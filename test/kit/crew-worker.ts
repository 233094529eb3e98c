/**
 * A process that runs one critical section after another under one lock, and records each section. Two witnesses that
 * do not rely on the lock (test/history/witnesses.ts) check that no two sections overlap. The process begins when it
 * receives the message 'go'.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Lease, LockClient } from '../../src/index.ts'
import { RecordedClient } from '../history/recorded.ts'
import { Recorder } from '../history/recorder.ts'
import { Witnesses, writeFenced } from '../history/witnesses.ts'
import { type KindName, lockOf, wantsOf } from './kind-clients.ts'

export interface Orders {
  worker: string
  url: string
  key: string
  kind: KindName
  /**
   * The folder for the history. It also contains a folder for the key. While a process is in a section, the process has
   * a file in the key's folder. The witnesses read these files.
   */
  folder: string
  /** Number of critical sections of each caller. */
  rounds: number
  fair: 'always' | 'never' | 'alternately'
  /** Number of concurrent callers in this process. */
  callers: number
  /** Duration of each critical section, in ms. Default: random, at most 3. */
  hold?: number
  /** Lease time, in ms. Default: the client's default. */
  lease?: number
  /**
   * The signal that stops or kills the process in the middle of its third critical section, before that section writes
   * to the register.
   */
  fate?: 'SIGKILL' | 'SIGSTOP'
}

/** `refused` tells whether the register refused the write of the section that the signal interrupted. */
export interface FromWorker {
  type: 'ready' | 'fated' | 'done'
  refused?: boolean
}

const FATED_SECTION = 3

const orders = JSON.parse(process.argv[2] as string) as Orders
const { worker, key, kind, rounds, callers, hold, fate } = orders

const redis = new Redis(orders.url)
const recorder = new Recorder(join(orders.folder, 'history'))
const locks = new LockClient(orders.url, { label: worker, ...(orders.lease && { lease: orders.lease }) })
const client = new RecordedClient(worker, locks, recorder)
const wants = wantsOf(kind)
const other = wants && { lock: lockOf(locks, kind, key), wants }
const witnesses = new Witnesses(worker, orders.folder, redis, recorder)
let sections = 0
let refused = false

function tell(message: FromWorker): Promise<void> {
  return new Promise(resolve => process.send?.(message, () => resolve()))
}

async function section(lease: Lease): Promise<void> {
  witnesses.enter(lease)
  sections += 1
  await sleep(hold ?? Math.random() * 3)
  if (fate && sections === FATED_SECTION) {
    await tell({ type: 'fated' })
    process.kill(process.pid, fate)
    refused = (await writeFenced(redis, lease)) !== 0
  } else await witnesses.write(lease)
  witnesses.leave(lease)
}

async function caller(number: number): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    const fair = orders.fair === 'always' || (orders.fair === 'alternately' && (round + number) % 2 === 0)
    const lease = await client.lock(key, { fair }, other)
    await section(lease)
    await client.release(lease)
  }
}

process.on('disconnect', () => process.exit())
process.once('message', async () => {
  await Promise.all(Array.from({ length: callers }, (_, i) => caller(i)))
  await locks.close()
  redis.disconnect()
  await tell({ type: 'done', refused })
  process.disconnect()
})
await locks.isLocked(key)
await tell({ type: 'ready' })

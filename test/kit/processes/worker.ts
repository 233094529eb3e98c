/**
 * A process that works under one lock, section after section, and reports what the witnesses of each section said.
 * It begins on the message 'go'.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Lease, LockClient, LockLostError } from '../../../src/index.ts'
import { enter, leave, Register } from './witness.ts'

export interface Orders {
  url: string
  key: string
  /** The marker file; without one only the register witnesses. */
  file?: string
  /** Sections of each caller. */
  rounds: number
  fair: 'always' | 'never' | 'alternately'
  /** Callers at a time in this process. */
  callers: number
  /** Default: the client's. Renewed either way. */
  lease?: number
  /** What happens to the process in the middle of its third section, between reading and writing. */
  fate?: 'SIGKILL' | 'SIGSTOP'
}

export interface Report {
  sections: number
  /** Sections that found somebody inside. */
  overlaps: number
  /** Writes that the register refused. */
  refused: number
  /** Sections that were told that their lock was lost. */
  lost: number
}

export type FromWorker = { type: 'ready' | 'fated' } | { type: 'done'; report: Report }

const FATED_SECTION = 3

const orders = JSON.parse(process.argv[2] as string) as Orders
const { key, file, rounds, callers, fate } = orders

const redis = new Redis(orders.url)
const register = new Register(redis, key)
const locks = new LockClient(orders.url, { ...(orders.lease && { lease: orders.lease }) })
const report: Report = { sections: 0, overlaps: 0, refused: 0, lost: 0 }

function tell(message: FromWorker): Promise<void> {
  return new Promise(resolve => process.send?.(message, () => resolve()))
}

async function section({ fencingToken }: Lease): Promise<void> {
  const alone = file === undefined || enter(file)
  if (!alone) report.overlaps += 1
  report.sections += 1
  const before = await register.read()
  if (report.sections % 4 === 0) await sleep(Math.random() * 3)
  if (fate && report.sections === FATED_SECTION) {
    await tell({ type: 'fated' })
    process.kill(process.pid, fate)
  }
  if (!(await register.write(fencingToken, String(Number(before) + 1)))) report.refused += 1
  if (alone && file !== undefined) leave(file)
}

async function caller(number: number): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    const fair = orders.fair === 'always' || (orders.fair === 'alternately' && (round + number) % 2 === 0)
    try {
      await locks.using(key, { fair }, section)
    } catch (error) {
      if (!(error instanceof LockLostError)) throw error
      report.lost += 1
    }
  }
}

process.on('disconnect', () => process.exit())
process.once('message', async () => {
  await Promise.all(Array.from({ length: callers }, (_, i) => caller(i)))
  await locks.close()
  redis.disconnect()
  await tell({ type: 'done', report })
  process.disconnect()
})
await redis.ping()
await tell({ type: 'ready' })

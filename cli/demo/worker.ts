/** One worker process of the sale: a counter that talks to the coordinator over IPC. */
import { Redis } from 'ioredis'
import { LockClient } from '../../src/index.ts'
import { Counter } from './counter.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import { sale } from './sale.ts'
import { booksIn, openShop } from './shop.ts'

let opened: { counter: Counter; redis: Redis; locks: LockClient | null } | undefined
let frozenWorker: number | null = null

function say(message: FromWorker): void {
  // The channel may close at any moment. The worker then exits on 'disconnect', so a failed send needs no handling.
  process.send?.(message, undefined, undefined, () => {})
}

async function open(how: Extract<ToWorker, { kind: 'open' }>): Promise<void> {
  const redis = new Redis(how.url, { maxRetriesPerRequest: 3 })
  redis.on('error', () => {}) // each command that fails reports its own error
  const locks = how.locked
    ? new LockClient(redis, { prefix: `${how.prefix}:lock`, label: how.label, waiterTtl: sale.waiterTtl })
    : null
  // Prepares connections and scripts before the sale opens, so that the first orders are as fast as the others.
  await redis.ping()
  await locks?.using(`warm-up of ${process.pid}`, { fair: true, lease: sale.lease }, () => {})
  opened = { counter: new Counter(process.pid, openShop(booksIn(redis), how.prefix), locks, say), redis, locks }
  say({ kind: 'ready' })
}

async function close(): Promise<void> {
  await opened?.locks?.close()
  opened?.redis.disconnect()
  process.disconnect()
}

/**
 * Wakes a frozen worker after the coordinator has died. Once awake, the worker notices that its channel is closed, and
 * exits.
 */
function wake(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT')
  } catch {
    // The process no longer exists: it was killed, or another worker has woken it and it has exited.
  }
}

function fail(error: unknown): void {
  say({ kind: 'failed', reason: error instanceof Error ? (error.stack ?? error.message) : String(error) })
}

process.on('message', (message: ToWorker) => {
  if (message.kind === 'open') open(message).catch(fail)
  else if (message.kind === 'frozen') frozenWorker = message.pid
  else if (message.kind === 'close') close().catch(fail)
  else opened?.counter.heard(message).catch(fail)
})
// Ctrl-C sends SIGINT to the coordinator and to all workers. A worker ignores the signal, because the coordinator
// decides when a worker ends.
process.on('SIGINT', () => {})
process.on('disconnect', () => {
  if (frozenWorker !== null) wake(frozenWorker)
  process.exit()
})

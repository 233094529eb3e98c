/**
 * One worker process of the sale. It handles the orders from the coordinator, many at a time, each under the coupon's
 * fair lock, and reports over IPC what it does.
 *
 * A careful program would check `lease.held` before it writes. The worker does not, because a process can still be
 * frozen between the check and the arrival of the write. In that case only the fencing token protects the shop, and
 * the demo shows this protection.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Lease, LockClient, LockLostError } from '../../src/index.ts'
import type { FromWorker, Left, Lost, Paused, ToWorker } from './messages.ts'
import { now, sale } from './sale.ts'
import { decide, type OrderInHand, openShop, type Shop, sells, type Write } from './shop.ts'

interface Counter {
  shop: Shop
  redis: Redis
  /** The lock client; null when the sale runs without the lock. */
  locks: LockClient | null
}

let counter: Counter | undefined
let requests = 0
let sections = 0
/** Set by `pause`, and cleared by the first critical section that is about to sell. */
let pauseWanted = false
let resume: (() => void) | undefined
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
  counter = { shop: openShop(redis, how.prefix), redis, locks }
  say({ kind: 'ready' })
}

/** One request for the lock, and its outcome. */
interface Visit {
  readonly request: number
  readonly requestedAt: number
  section: string | null
  refused: Lost['refused']
  wroteAt: number | null
}

/**
 * Handles one order until it has an answer. If the lock is lost, the worker requests the lock again for the same order.
 * So an order may be processed more than once.
 */
async function handle(order: OrderInHand): Promise<void> {
  const { shop, locks } = counter!
  for (;;) {
    const visit: Visit = { request: ++requests, requestedAt: now(), section: null, refused: null, wroteAt: null }
    try {
      const left = locks
        ? await locks.using(order.coupon, { fair: true, lease: sale.lease }, lease => serve(shop, order, visit, lease))
        : await serve(shop, order, visit, null)
      // The report is sent after the release, so that it does not delay the next holder.
      if (left) return say(left)
    } catch (error) {
      if (!(error instanceof LockLostError)) throw error
    }
    const { section, refused, wroteAt } = visit
    say({ kind: 'lost', section, order: order.id, refused, wroteAt })
  }
}

/** Runs the critical section. Returns null if the shop refused a write. */
async function serve(shop: Shop, order: OrderInHand, visit: Visit, lease: Lease | null): Promise<Left | null> {
  const at = now()
  const section = `${process.pid}.${++sections}`
  visit.section = section
  const { coupon } = order
  const token = lease?.fencingToken ?? null
  const accepted = (write: Write): boolean => {
    if (!write.accepted) visit.refused = { token: write.token, seen: write.seen }
    return write.accepted
  }

  const entry = await shop.enter(coupon, token, section)
  const { request, requestedAt } = visit
  const found = entry.accepted ? entry.previous || null : null
  const hold = lease?.id ?? null
  const leaseEnds = leaseEnd(lease)
  say({ kind: 'entered', section, order: order.id, request, requestedAt, at, hold, token, leaseEnds, found })
  if (!accepted(entry)) return null

  const look = await shop.look(coupon, order.customer)
  const answer = decide(order, look)
  const selling = sells(answer, look)
  await sleep(selling ? sale.look + sale.payment : sale.look)
  if (selling && pauseWanted)
    await pause({ section, order: order.id, leaseEnds: leaseEnd(lease), stockRead: look.stock })

  if (!accepted(await shop.record(order, token, answer, look))) return null
  visit.wroteAt = now()
  if (!accepted(await shop.leave(coupon, token))) return null
  const stock = selling ? look.stock - 1 : look.stock
  return { kind: 'left', section, order: order.id, answer, stock, at: now() }
}

function pause(where: Omit<Paused, 'kind'>): Promise<void> {
  pauseWanted = false
  return new Promise(resolve => {
    resume = resolve
    say({ kind: 'paused', ...where })
  })
}

function leaseEnd(lease: Lease | null): number | null {
  return lease === null ? null : now() + lease.remaining()
}

async function close(): Promise<void> {
  await counter?.locks?.close()
  counter?.redis.disconnect()
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
  else if (message.kind === 'order') handle(message).catch(fail)
  else if (message.kind === 'pause') pauseWanted = true
  else if (message.kind === 'go') resume?.()
  else if (message.kind === 'frozen') frozenWorker = message.pid
  else close().catch(fail)
})
// Ctrl-C sends SIGINT to the coordinator and to all workers. A worker ignores the signal, because the coordinator
// decides when a worker ends.
process.on('SIGINT', () => {})
process.on('disconnect', () => {
  if (frozenWorker !== null) wake(frozenWorker)
  process.exit()
})

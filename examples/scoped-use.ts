/**
 * Scoped use is the form to start with. A function runs while the lock is held. When the function returns or throws,
 * the lock is released. Three requests want an invoice number at the same time. Each request pauses between reading the
 * last number and storing the next one. Without the lock, all three would get the same number.
 */
import { setTimeout as work } from 'node:timers/promises'
import { type Lease, LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env

/** In this example an object takes the place of a database row that several servers share. */
const row = { lastInvoice: 0, fencingToken: 0 }

/** The row refuses a write with an older fencing token. `fenced-write.ts` shows this in SQL. */
function store(lastInvoice: number, { fencingToken }: Lease): void {
  if (fencingToken < row.fencingToken) throw new Error('a later holder has already written')
  Object.assign(row, { lastInvoice, fencingToken })
}

await using locks = new LockClient(REDIS_URL)
const key = 'example:invoices'

function nextInvoice(customer: string): Promise<number> {
  // A fair lock serves callers in the order in which they ask. Unfair locking is faster under contention.
  return locks.using(key, { fair: true, timeout: 10_000 }, async lease => {
    const invoice = row.lastInvoice + 1
    await work(20)
    store(invoice, lease)
    console.log(`${customer}: invoice ${invoice} (${lease.via})`)
    return invoice
  })
}

const invoices = await Promise.all([nextInvoice('Ada'), nextInvoice('Grace'), nextInvoice('Edsger')])
console.log(`all different: ${new Set(invoices).size === invoices.length}`)

try {
  await locks.using(key, () => {
    throw new Error('out of paper')
  })
} catch (error) {
  // The function's own error reaches the caller unchanged, after the lock has been released.
  console.log(`failed: ${(error as Error).message}; still locked: ${await locks.isLocked(key)}`)
}

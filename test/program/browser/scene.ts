/** Locks and queues to show in the tests of the page of `baton ui`, and selectors for what the page shows. */
import type { Page } from 'puppeteer-core'
import type { Lease, LockClient } from '../../../src/index.ts'
import { client } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'

/** Selects the names of the locks in the list. */
export const keys = '#rows .key'
/** Selects the waiters of the opened lock. */
export const queue = '#waiting td:nth-child(2)'

/** Takes the locks with these names. */
export async function held(locks: LockClient, ...names: readonly string[]): Promise<Lease[]> {
  const leases: Lease[] = []
  for (const name of names) leases.push(await locks.lock(name))
  return leases
}

/**
 * Queues one fair caller for each label, in this order. Each caller has its own client, which has that label. If a
 * caller is granted the lock, the test has to release it.
 */
export async function joined(key: string, ...labels: readonly string[]): Promise<Map<string, Promise<Lease>>> {
  const grants = new Map<string, Promise<Lease>>()
  for (const label of labels) {
    const locks = client({ label })
    const grant = locks.lock(key, { fair: true })
    grant.catch(() => {}) // this call rejects if the test ends before the caller's turn
    grants.set(label, grant)
    await eventually(async () => (await locks.inspect(key)).waiters.some(waiter => waiter.label === label))
  }
  return grants
}

/** Returns by how many pixels the page is wider than its window. */
export async function overflow(page: Page): Promise<number> {
  return (await page.evaluate('document.documentElement.scrollWidth - innerWidth')) as number
}

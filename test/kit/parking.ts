/** Waiters that are parked. There is no other way to make one, in this process or in a child; so nothing here knows of the test runner. */
import type { Lease, Lock, LockClient, LockOptions, LockState } from '../../src/index.ts'
import { eventually, sleep } from './time.ts'

/** Fair and unfair, for tables of tests. */
export const ways = [true, false]

/**
 * A call of `lock` that is parked, unfair unless the options say otherwise; an unfair one never joins the queue. It has been
 * refused, says its event, and a fair one stands in the queue, says `inspect`. In an object, because a promise in a promise
 * would be waited for; it may be left without an outcome.
 */
export async function park(
  locks: LockClient,
  key: string,
  options: LockOptions = {},
): Promise<{ lease: Promise<Lease> }> {
  const [lease] = await parkMany(locks, key, 1, options)
  return { lease: lease! }
}

/** So many of them. */
export async function parkMany(
  locks: LockClient,
  key: string,
  count: number,
  options: LockOptions = {},
): Promise<Promise<Lease>[]> {
  const owners: string[] = []
  const listen = (event: { key: string; owner: string }) => {
    if (event.key === key) owners.push(event.owner)
  }
  locks.on('waiting', listen)
  const call = () => locks.lock(key, { fair: false, fairAfter: Number.POSITIVE_INFINITY, ...options })
  const leases = Array.from({ length: count }, call)
  const failed = leases.map(lease => lease.then(() => new Promise<never>(() => {})))
  await Promise.race([eventually(() => owners.length >= count), ...failed])
  locks.off('waiting', listen)
  if (options.fair) {
    const allQueued = async () => {
      const queued = new Set((await locks.inspect(key)).waiters.map(({ owner }) => owner))
      return owners.every(owner => queued.has(owner))
    }
    await Promise.race([eventually(allQueued), ...failed])
  }
  return leases
}

/** One that has nothing more to ask: an unfair one subscribes and tries again after it was refused. */
export async function parkQuietly(locks: LockClient, key: string, options: LockOptions = {}) {
  const parked = await park(locks, key, options)
  if (!options.fair) await sleep(30)
  return parked
}

/** A fair call of `lock`, whichever the kind, as soon as it stands at this place of the queue. */
export async function parkAt<Options extends LockOptions>(
  lock: Lock<Options>,
  position: number,
  options?: Options,
): Promise<{ lease: Promise<Lease> }> {
  const lease = lock.lock({ fair: true, ...options } as Options)
  await eventually(async () => (await lock.inspect()).waiters.length >= position)
  return { lease }
}

/** The lock's state as soon as its fair queue has this many waiters. */
export function queueOf(locks: LockClient, key: string, waiters: number): Promise<LockState> {
  return eventually(async () => {
    const state = await locks.inspect(key)
    return state.waiters.length === waiters ? state : undefined
  }) as Promise<LockState>
}

/** Parks waiters. Both the tests and their child processes use this file, so it must not import the test runner. */
import type { Lease, Lock, LockClient, LockOptions, LockState } from '../../src/index.ts'
import { eventually, sleep } from './time.ts'

/** The values of the option `fair`, for tables of tests. */
export const ways = [true, false]

/**
 * Calls `lock`, unfair by default, and resolves when the call waits. A `waiting` event shows that Redis has refused the
 * call. If the call is fair, `inspect` also shows the waiter in the queue. An unfair call never joins the queue.
 *
 * The call's promise is returned inside an object, because `await park(…)` would otherwise wait until the call is
 * granted.
 */
export async function park(
  locks: LockClient,
  key: string,
  options: LockOptions = {},
): Promise<{ lease: Promise<Lease> }> {
  const [lease] = await parkMany(locks, key, 1, options)
  return { lease: lease! }
}

/** Parks `count` calls, each as `park` does. */
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

/**
 * Parks a caller and waits until the caller has no more requests to send. After its refusal, an unfair caller still
 * subscribes and tries once more, so this function gives an unfair caller another 30 ms.
 */
export async function parkQuietly(locks: LockClient, key: string, options: LockOptions = {}) {
  const parked = await park(locks, key, options)
  if (!options.fair) await sleep(30)
  return parked
}

/** Makes a fair call of `lock` on any kind of lock, and resolves when the call has this position in the queue. */
export async function parkAt<Options extends LockOptions>(
  lock: Lock<Options>,
  position: number,
  options?: Options,
): Promise<{ lease: Promise<Lease> }> {
  const lease = lock.lock({ fair: true, ...options } as Options)
  await eventually(async () => (await lock.inspect()).waiters.length >= position)
  return { lease }
}

/** Resolves to the lock's state when its fair queue has this many waiters. */
export function queueOf(locks: LockClient, key: string, waiters: number): Promise<LockState> {
  return eventually(async () => {
    const state = await locks.inspect(key)
    return state.waiters.length === waiters ? state : undefined
  }) as Promise<LockState>
}

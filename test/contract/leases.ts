/**
 * Makes leases for contract tests: a lease from a local hand-off, a lease whose client is cut off from Redis, and
 * leases from every kind of grant.
 */
import type { Lease, LockClient, LockOptions } from '../../src/index.ts'
import { parkMany } from '../kit/parking.ts'
import { place } from '../kit/place.ts'
import { client } from '../kit/redis.ts'

export interface HandedOn {
  /** The lease that the client granted by local hand-off when `predecessor` was released. */
  readonly lease: Lease
  readonly predecessor: Lease
  /** Calls by the holder's client that wait for `lease` to end. */
  readonly behind: Promise<Lease>[]
}

/**
 * Parks callers of the client behind another client's lease. The first caller releases as soon as it is granted, so the
 * second caller gets the lock by local hand-off. If the machine stalls for a few ms before that release, Redis grants
 * the lock to the second caller instead, and this function starts again.
 */
export async function handedOn(
  locks: LockClient,
  key: string,
  options: LockOptions = {},
  behind = 0,
): Promise<HandedOn> {
  const stranger = client()
  for (;;) {
    const holder = await stranger.lock(key)
    const calls = await parkMany(locks, key, 2 + behind, options)
    await holder.release()
    const predecessor = await calls[0]!
    void predecessor.release()
    const lease = await calls[1]!
    if (lease.via === 'handoff') return { lease, predecessor, behind: calls.slice(2) }
    await lease.release()
    for (const call of calls.slice(2)) await (await call).release()
  }
}

/**
 * Takes the lock, then cuts the client off from Redis. The client cannot release the lock, so the hold ends when its
 * lease ends.
 */
export async function takeAndVanish(key: string, options: LockOptions): Promise<Lease> {
  const { source, proxy } = await place().proxied()
  const lease = await client({ outageTimeout: 1_000 }, source).lock(key, options)
  proxy.refuse()
  proxy.cut()
  return lease
}

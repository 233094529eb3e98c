/** How the contract tests come by leases of two kinds: handed on within their client, and of a holder that is cut off. */
import type { Lease, LockClient, LockOptions } from '../../src/index.ts'
import { park, parkMany } from '../kit/parking.ts'
import { place } from '../kit/place.ts'
import { client } from '../kit/redis.ts'

export interface HandedOn {
  /** Its predecessor was a lease of the same client. */
  readonly lease: Lease
  readonly predecessor: Lease
  /** Callers of the same client that stand behind it. */
  readonly behind: Promise<Lease>[]
}

/**
 * Parks callers of the client behind a lease of somebody else, and has the first of them release as soon as it is granted:
 * then the second has the lock from it. On a machine that stops for some ms just then it has it from Redis; so again.
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

/** Takes the lock by a client that is cut off then: the hold ends with its lease, and nobody gives it back before. */
export async function takeAndVanish(key: string, options: LockOptions): Promise<Lease> {
  const { source, proxy } = await place().proxied()
  const lease = await client({ outageTimeout: 1_000 }, source).lock(key, options)
  proxy.refuse()
  proxy.cut()
  return lease
}

/** The second client is granted the lock in every way but at once: by hand-off, as its own again, woken, and after a lapse. */
export async function grantInEveryWay(one: LockClient, two: LockClient, key: string): Promise<void> {
  const first = await one.lock(key)
  const queued = await park(two, key, { fair: true })
  await first.release()
  const second = await queued.lease
  await (await two.lock(key, { owner: second.owner })).release()
  await second.release()
  const third = await one.lock(key)
  const parked = await park(two, key)
  await third.release()
  await (await parked.lease).release()
  await takeAndVanish(key, { lease: 1_000 })
  await (await two.tryLock(key, { timeout: 10_000 }))!.release()
}

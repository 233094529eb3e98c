/** Tests the option `replicas` with local hand-offs, which no replica confirms. Only mutexes are handed on locally. */
import { expect, onTestFinished, test } from 'vitest'
import type { Lease, LockClient, LockOptions } from '../../src/index.ts'
import { within } from '../kit/outcomes.ts'
import { parkMany } from '../kit/parking.ts'
import { bluntRedis, client, freshKey, ownServer, plainRedis } from '../kit/redis.ts'
import { Replication } from '../kit/replication.ts'
import { eventually } from '../kit/time.ts'

/**
 * Returns a lease that the client has just granted by local hand-off. If the machine stalls for a few ms, Redis grants
 * the lock instead; this function then tries again.
 */
async function handedOn(locks: LockClient, stranger: LockClient, key: string, options: LockOptions): Promise<Lease> {
  for (;;) {
    const holder = await stranger.lock(key)
    const [first, second] = await parkMany(locks, key, 2, options)
    await holder.release()
    void (await first!).release()
    const lease = await second!
    if (lease.via === 'handoff') return lease
    await lease.release()
  }
}

// This test fails if `if (!this.#kind.traits.replicated) holder` becomes `holder` in src/key/records.ts: the master prolongs the lease when
// it learns of the hand-off, and the client relies on the longer lease. Meanwhile the replica, which has become the
// master, grants the lock to another caller.
test('I1: a lease that was handed on locally ends no later than the lease before it, which the replica knows', async () => {
  const [{ url }, replica] = [await ownServer('--repl-diskless-sync-delay', '0'), await ownServer()]
  const [master, follower] = [
    { url, redis: bluntRedis(url) },
    { url: replica.url, redis: bluntRedis(replica.url) },
  ]
  const replication = await Replication.begin(master, follower)
  onTestFinished(() => replication.close())
  // Wait for the first acknowledgement of the new replica, which takes up to a second.
  await eventually(async () => (await plainRedis(url).wait(1, 500)) === 1, 15_000)
  const key = freshKey()
  const [locks, stranger] = [client({ replicas: { min: 1, timeout: 2_000 } }, url), client({}, url)]
  const lease = await handedOn(locks, stranger, key, { lease: 2_000 })
  // The replica has confirmed the first grant. The client reports the hand-off to Redis only when this test lets the
  // event loop run again. The replica is cut off before that, so it never learns of the hand-off.
  replication.loseWritesNow()
  const until = performance.now() + 600
  while (performance.now() < until);
  await eventually(async () => (await stranger.inspect(key)).fencingToken === lease.fencingToken)
  await replication.promote()
  const next = await within(4_000, client({}, replica.url).lock(key))
  expect([next.held, lease.held]).toEqual([true, false])
})

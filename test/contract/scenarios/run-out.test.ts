/** Tests that an owner which locks again just when its hold has ended for the client, but not yet for Redis, keeps nothing (I7). */
import { expect, test } from 'vitest'
import type { Lease, LockClient } from '../../../src/index.ts'
import { client, freshKey } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'

const reentries = {
  'an owner by name asks after the hold has ended': async (locks: LockClient, key: string) => {
    const first = await locks.lock(key, { owner: 'y', lease: 60 })
    while (first.held);
    return locks.lock(key, { owner: 'y' })
  },
  'a nested call asks before the hold ends, and is answered after that': (locks: LockClient, key: string) =>
    new Promise<Lease>((resolve, reject) => {
      const run = async (first: Lease) => {
        while (first.remaining() > 0.2);
        const second = locks.lock(key)
        while (first.held);
        resolve(await second)
      }
      locks.using(key, { lease: 60 }, run).catch(reject)
    }),
}

test.each(Object.entries(reentries))('after %s, its release frees the lock', async (_, reenter) => {
  const locks = client()
  for (let i = 0; i < 10; i++) {
    const key = freshKey('run-out')
    const second = await reenter(locks, key)
    expect(await second.release()).toBe(true)
    await eventually(async () => !(await locks.isLocked(key)))
  }
})

/** Tests re-entry: by async context inside `using`, by explicit owner, and by runAs. */
import { describe, expect } from 'vitest'
import type { Lease } from '../../src/index.ts'
import { promptly, settles } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { sleep } from '../kit/time.ts'

describe('inside using, the same key re-enters', () => {
  test('by lock, tryLock and using, with the same fencing token and owner but different ids', async ({ key }) => {
    const locks = client()
    await locks.using(key, async outer => {
      const second = await promptly(locks.lock(key))
      const third = await locks.tryLock(key)
      await locks.using(key, async fourth => {
        const inner = [second, third!, fourth]
        expect(inner.map(lease => lease.via)).toEqual(['reentry', 'reentry', 'reentry'])
        expect(inner.map(lease => lease.fencingToken)).toEqual(Array(3).fill(outer.fencingToken))
        expect(inner.map(lease => lease.owner)).toEqual(Array(3).fill(outer.owner))
        expect(new Set([outer, ...inner].map(lease => lease.id)).size).toBe(4)
        expect(await locks.inspect(key)).toMatchObject({ holds: 4, owner: outer.owner })
      })
      expect((await locks.inspect(key)).holds).toBe(3)
      await second.release()
      await third!.release()
    })
    expect(await locks.isLocked(key)).toBe(false)
  })

  test('I3: although fair waiters are queued, and by a fair call', async ({ locks, other, key }) => {
    let waits: Promise<Lease> | undefined
    await locks.using(key, async () => {
      waits = (await park(other, key, { fair: true })).lease
      await promptly(locks.using(key, () => {}))
      await promptly(locks.using(key, { fair: true }, () => {}))
      expect((await locks.inspect(key)).waiters).toHaveLength(1)
    })
    expect((await promptly(waits!)).held).toBe(true)
  })

  test('in parallel branches, all at the same time', async ({ locks, key }) => {
    await locks.using(key, async () => {
      const branches = await promptly(Promise.all([1, 2, 3].map(() => locks.lock(key))))
      expect((await locks.inspect(key)).holds).toBe(4)
      await Promise.all(branches.map(lease => lease.release()))
    })
  })
})

describe('inside using, these calls do not re-enter', () => {
  test('I1: parallel branches that take a different key exclude each other', async ({ locks }) => {
    const [outer, inner] = [freshKey('outer'), freshKey('inner')]
    let inside = 0
    let most = 0
    await locks.using(outer, async () => {
      const branch = () =>
        locks.using(inner, async () => {
          most = Math.max(most, ++inside)
          expect(await locks.tryLock(outer)).not.toBeNull()
          await sleep(20)
          inside -= 1
        })
      await promptly(Promise.all([branch(), branch(), branch()]))
    })
    expect(most).toBe(1)
  })

  test('I1: a lock whose outer lease has been released in the meantime', async ({ locks, other, key }) => {
    await locks.using(key, async lease => {
      await lease.release()
      const taken = await other.lock(key)
      expect(await locks.tryLock(key)).toBeNull()
      await taken.release()
      expect((await locks.tryLock(key))?.via).toBe('immediate')
    })
  })

  test('I1: a lock whose outer lease has run out and which another caller holds', async ({ locks, other, key }) => {
    const run = locks.using(key, { lease: 300 }, async lease => {
      const taken = await promptly(other.lock(key))
      expect(lease.held).toBe(false)
      expect(await locks.tryLock(key)).toBeNull()
      await taken.release()
    })
    await expect(run).rejects.toThrow()
  })

  test('I1: a lease of `lock`, which has no inside', async ({ locks, key }) => {
    await locks.lock(key)
    expect(await locks.tryLock(key)).toBeNull()
  })

  test('I1: work that fn started and left running', async ({ locks, key }) => {
    let late: Promise<Lease | null> | undefined
    let goOn!: () => void
    const ended = new Promise<void>(resolve => {
      goOn = resolve
    })
    await locks.using(key, () => {
      late = ended.then(() => locks.tryLock(key))
    })
    const other = await locks.lock(key)
    goOn()
    expect(await late).toBeNull()
    await other.release()
  })
})

describe('owner', () => {
  test('the same owner re-enters, from another client too; another owner does not', async ({ one, two, key }) => {
    const first = await one.lock(key, { owner: 'me' })
    expect(first.owner).toBe('me')
    const again = await promptly(two.lock(key, { owner: 'me' }))
    expect(again).toMatchObject({ via: 'reentry', owner: 'me', fencingToken: first.fencingToken })
    expect(again.id).not.toBe(first.id)
    expect((await one.tryLock(key, { owner: 'me' }))?.via).toBe('reentry')
    expect(await two.tryLock(key, { owner: 'you' })).toBeNull()
    expect(await two.tryLock(key)).toBeNull()
    expect(await one.inspect(key)).toMatchObject({ owner: 'me', holds: 3 })
  })

  test.for([0, 1, 2])(
    'each hold is released separately, and the last release frees the lock (order %s)',
    async (turn, { one, two, key }) => {
      const holds = [one, two, one].map(each => each.lock(key, { owner: 'me' }))
      const leases = await Promise.all(holds)
      for (let i = 0; i < 3; i++) {
        expect((await two.inspect(key)).holds).toBe(3 - i)
        expect(await two.tryLock(key, { owner: 'you' })).toBeNull()
        expect(await leases[(i + turn) % 3]!.release()).toBe(true)
      }
      expect((await two.tryLock(key, { owner: 'you' }))?.held).toBe(true)
    },
  )

  test('I4: the next waiter is granted with the last release', async ({ one, two, key }) => {
    const [first, second] = [await one.lock(key, { owner: 'me' }), await one.lock(key, { owner: 'me' })]
    const queued = await park(two, key, { fair: true })
    await first.release()
    expect(await settles(queued.lease, 200)).toBe(false)
    await second.release()
    expect((await promptly(queued.lease)).via).toBe('handoff')
  })

  test('an explicit owner wins over the context’s', async ({ locks, key }) => {
    await locks.using(key, async () => {
      expect(await locks.tryLock(key, { owner: 'somebody else' })).toBeNull()
    })
    const lease = await locks.runAs('me', () => locks.lock(key, { owner: 'you' }))
    expect(lease.owner).toBe('you')
  })
})

describe('runAs', () => {
  test('returns what fn returns, sync or not, and throws what it throws', async ({ locks }) => {
    expect(locks.runAs('me', () => 5)).toBe(5)
    expect(await locks.runAs('me', async () => 5)).toBe(5)
    expect(() =>
      locks.runAs('me', () => {
        throw new Error('mine')
      }),
    ).toThrow('mine')
  })

  test('every lock that is taken inside belongs to the owner, which re-enters from anywhere', async ({ one, two }) => {
    const [a, b] = [freshKey('a'), freshKey('b')]
    await one.runAs('me', async () => {
      const first = await one.lock(a)
      await sleep(5)
      const [again, other] = await Promise.all([one.lock(a), one.lock(b)])
      expect([first.owner, again.owner, other.owner]).toEqual(['me', 'me', 'me'])
      expect(again.via).toBe('reentry')
      await one.using(b, lease => expect(lease).toMatchObject({ owner: 'me', via: 'reentry' }))
    })
    expect((await two.runAs('me', () => two.tryLock(a)))?.via).toBe('reentry')
    expect((await two.tryLock(a, { owner: 'me' }))?.via).toBe('reentry')
    expect(await two.runAs('you', () => two.tryLock(a))).toBeNull()
    expect(await one.tryLock(a)).toBeNull()
  })

  test('inside using, it is a different owner', async ({ locks, key }) => {
    await locks.using(key, async () => {
      expect(await locks.runAs('somebody else', () => locks.tryLock(key))).toBeNull()
    })
  })
})

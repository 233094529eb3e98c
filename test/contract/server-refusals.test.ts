/**
 * Tests that a call rejects with LockConnectionError if the server refuses its requests, that the error's cause is the
 * server's own error, and that nothing is left half done.
 */
import { describe, expect } from 'vitest'
import type { Admin } from '../kit/admin.ts'
import { heard, promptly } from '../kit/outcomes.ts'
import { park, queueOf } from '../kit/parking.ts'
import { ownPlace } from '../kit/place.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'
import { refused, refusesAll, refusesLooks } from './refused.ts'

describe('OOM', () => {
  function limitMemory(admin: Admin, bytes: number): Promise<unknown> {
    return admin.each(master => master.config('SET', 'maxmemory', String(bytes)))
  }

  test('a new lock is refused as a whole, and taken as soon as there is memory', async ({ own, key }) => {
    const [admin, locks, other] = [own.admin(), client({}, own.source()), client({}, own.source())]
    await locks.isLocked(key)
    await limitMemory(admin, 1)
    await refusesAll(locks, key, /^OOM /)
    expect(await admin.keysWith('')).toEqual([])
    expect(await locks.isLocked(key)).toBe(false)
    await limitMemory(admin, 0)
    expect((await promptly(other.lock(key))).held).toBe(true)
  })

  test('I7: a fair waiter is refused, not half queued', async ({ own, key }) => {
    const [admin, locks, other] = [own.admin(), client({}, own.source()), client({}, own.source())]
    await locks.lock(key)
    await limitMemory(admin, 1)
    await promptly(refused(other.lock(key, { fair: true }), /^OOM /, key))
    await limitMemory(admin, 0)
    await queueOf(locks, key, 0)
    const queued = await park(other, key, { fair: true })
    await locks.forceRelease(key)
    expect((await promptly(queued.lease)).held).toBe(true)
  })

  test('I4: a held lock can be renewed, released, handed on and force-released', async ({ own }) => {
    const [admin, locks, other] = [own.admin(), client({ lease: 60_000 }, own.source()), client({}, own.source())]
    const [a, b, c] = [freshKey('a'), freshKey('b'), freshKey('c')]
    const leases = [await locks.lock(a, { lease: 10_000 }), await locks.lock(b), await locks.lock(c)]
    const queued = [await park(other, b, { fair: true }), await park(other, c, { fair: true })]
    await limitMemory(admin, 1)
    await leases[0]!.renew(60_000)
    expect(leases[0]!.remaining()).toBeGreaterThan(40_000)
    expect(await leases[0]!.release()).toBe(true)
    expect(await leases[1]!.release()).toBe(true)
    expect(await other.forceRelease(c)).toBe(true)
    for (const { lease } of queued) expect((await promptly(lease)).held).toBe(true)
    await eventually(() => leases[2]!.signal.aborted)
    expect(await other.isLocked(a)).toBe(false)
  })
})

describe('the password', () => {
  const secret = 'open sesame'

  /** Starts servers that require the password. */
  async function guarded() {
    const own = await ownPlace()
    await own.admin().each(master => master.config('SET', 'requirepass', secret))
    return own
  }

  test('NOAUTH without a password', async () => {
    const own = await guarded()
    await refusesAll(client({}, own.sourceAs()), freshKey(), /^NOAUTH /)
  })

  test('WRONGPASS with a wrong password', async () => {
    const own = await guarded()
    await refusesAll(client({}, own.sourceAs({ password: 'hunter2' })), freshKey(), /^WRONGPASS /)
  })

  test('the right one works', async () => {
    const own = await guarded()
    const locks = client({}, own.sourceAs({ password: secret }))
    expect((await promptly(locks.lock(freshKey()))).held).toBe(true)
  })
})

describe('NOPERM', () => {
  /**
   * Starts servers with two users. `rules` restrict the rights of the user `limited`. The other user has all rights.
   */
  async function limited(...rules: string[]) {
    const own = await ownPlace()
    const admin = own.admin()
    await admin.each(master => master.acl('SETUSER', 'limited', 'on', '>pw', '~*', '&*', '+@all', ...rules))
    const locks = client({ waiterTtl: 900 }, own.sourceAs({ username: 'limited', password: 'pw' }))
    return { admin, locks, other: client({ waiterTtl: 900 }, own.source()) }
  }

  test('without the right to run scripts every call is refused, and nothing is written', async ({ key }) => {
    const { admin, locks } = await limited('-evalsha', '-eval')
    await refusesAll(locks, key, /^NOPERM /)
    await refusesLooks(locks, key, /^NOPERM /)
    expect(await admin.keysWith('')).toEqual([])
  })

  test('without rights on the key every call is refused, and nothing is written', async () => {
    const { admin, locks } = await limited('resetkeys', '~others:*')
    await refusesAll(locks, freshKey(), /NOPERM/)
    expect(await admin.keysWith('')).toEqual([])
  })

  test.each([
    ['the command', ['-subscribe', '-ssubscribe']],
    ['the channels', ['resetchannels']],
  ])(
    'I7: without the right to subscribe (%s) a call that has to wait is refused, and leaves no trace',
    async (_, rules) => {
      const { locks, other } = await limited(...rules)
      const key = freshKey()
      const lease = await other.lock(key)
      for (const fair of [true, false]) {
        await promptly(refused(locks.lock(key, { fair }), /^NOPERM /, key))
        await promptly(refused(locks.tryLock(key, { fair, timeout: 60_000 }), /^NOPERM /, key))
      }
      await queueOf(other, key, 0)
      expect(locks.stats().waiting).toBe(0)
      await lease.release()
      expect(await other.isLocked(key)).toBe(false)
    },
  )

  test('without the right to subscribe a call that does not have to wait is granted', async ({ key }) => {
    const { locks } = await limited('-subscribe', '-ssubscribe')
    const lease = await promptly(locks.lock(key))
    expect(await promptly(locks.tryLock(key))).toBeNull()
    expect(await lease.release()).toBe(true)
  })

  test.each([
    ['the command', ['-publish', '-spublish']],
    ['the channels', ['resetchannels', '&lock:*inbox:*']],
  ])(
    'I4: a release without the right to publish (%s) is complete: the next waiter is granted, but late',
    async (_, rules) => {
      const { locks, other } = await limited(...rules)
      for (const fair of [true, false]) {
        const key = freshKey()
        const lease = await locks.lock(key)
        const waits = fair ? await park(other, key, { fair: true }) : await park(other, key)
        expect(await lease.release()).toBe(true)
        const next = await promptly(waits.lease)
        expect(next.held).toBe(true)
        expect(await next.release()).toBe(true)
      }
    },
  )
})

test('WRONGTYPE: a key of another type is refused and left alone; other locks work', async ({ own, key }) => {
  const [admin, locks] = [own.admin(), client({}, own.source())]
  await (await locks.lock(key)).release()
  const [name] = await admin.keysWith(key)
  await admin.everywhere(redis => redis.set(name!, 'mine'))
  const errors = heard(locks, 'error')
  await refusesAll(locks, key, /^WRONGTYPE /)
  await refusesLooks(locks, key, /^WRONGTYPE /)
  for (const value of await admin.everywhere(redis => redis.get(name!))) expect(value).toBe('mine')
  expect(await admin.keysWith('')).toEqual([name])
  expect((await locks.lock(freshKey())).held).toBe(true)
  expect(errors).toEqual([])
})

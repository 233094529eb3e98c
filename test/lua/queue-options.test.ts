/** Tests what the scripts do for the options of the queue: retained holds, the pace, a full queue, numbers of permits. */
import { describe, expect, test } from 'vitest'
import { renewed } from '../kit/names.ts'
import { plainRedis } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { again, anonymous, type Caller, caller, claimOf } from './callers.ts'
import { type Asker, asker, claimOf as claimOfAsker, TestSemaphore } from './semaphore.ts'
import { sharedLock } from './test-lock.ts'

describe('a hold that is released before its minHold has passed', () => {
  test('changes its id, and ends at that time: nothing but a forced release finds it', async () => {
    const lock = await sharedLock()
    const holder = caller('holder', { minHold: 60_000 })
    const token = await lock.grant(holder)
    expect(await lock.release(holder)).toEqual({ status: 'released' })
    const text = (await lock.redis.hget(lock.names.lock, 'holder'))!
    expect(text.slice(34, 62)).toBe(`!${holder.id.slice(1)}`)
    expect(text.slice(62)).toMatch(new RegExp(`^ \\d+ 60000m60000,10000,${holder.id[0]} `))
    const { hold, until, owner } = await lock.hash()
    expect({ hold, owner }).toEqual({ hold: holder.id, owner: holder.owner })
    expect(Number(until)).toBe(Math.floor(token / 1000) + 60_000)
    expect(await lock.release(holder)).toEqual({ status: 'ended' })
    expect(await lock.leave(holder, { queued: false })).toBe('absent')
    const { values } = await lock.scripts.run('renew', renewed(lock.names.lock), [holder.id, token, 1])
    expect(values).toEqual([null])
    for (const who of [holder, again(holder), caller('other')]) {
      expect((await lock.acquire(who)).status).toBe('refused')
    }
    expect(await lock.forceRelease('a request', holder.id)).toBe('released')
    expect((await lock.acquire(caller('next'))).status).toBe('granted')
  })

  test('lasts as long after the release if the clock of the lock is ahead', async () => {
    const lock = await sharedLock()
    const ahead = (await lock.micros()) + 3_600_000_000
    await lock.given({ clock: ahead })
    const holder = anonymous('holder', { minHold: 300 })
    await lock.grant(holder)
    await lock.release(holder)
    const { ttl = 0 } = await lock.acquire(caller('next'))
    expect(ttl).toBeLessThanOrEqual(300)
    await sleep(400)
    expect((await lock.acquire(caller('next'))).status).toBe('succeeded')
  })

  test('a permit: the record keeps its number, and is freed with it', async () => {
    const semaphore = await TestSemaphore.on()
    const holder = asker(anonymous('holder', { minHold: 1_000 }), '1/2s')
    await semaphore.acquire(holder)
    expect(await semaphore.release(holder)).toEqual(['released'])
    expect((await semaphore.state()).holders).toEqual([`!${holder.id.slice(1)}`])
    expect(await semaphore.redis.hget(semaphore.names.lock, 'slots')).toBe('1')
    expect((await semaphore.acquire(asker(anonymous('big'), '2/2'))).status).toBe('refused')
    await eventually(async () => (await semaphore.acquire(asker(anonymous('big'), '2/2'))).status === 'succeeded')
    expect(await semaphore.redis.hget(semaphore.names.lock, 'slots')).toBe('')
  })
})

describe('a call that does not join a long queue', () => {
  test('hands a lapsed lock on first, and then counts who is left', async () => {
    const lock = await sharedLock()
    const [ada, ben, cyd] = ['ada', 'ben', 'cyd'].map(name => caller(name)) as [Caller, Caller, Caller]
    await lock.listen(ada, ben)
    await lock.given({ holder: caller('holder'), endsIn: -1, waiters: [ada, ben] })
    expect(await lock.acquire(cyd, { mode: 1 })).toEqual({ status: 'full', waiters: 1 })
    expect(await lock.holder()).toBe(ada.id)
    await lock.lapse()
    expect(await lock.acquire(cyd, { mode: 1 })).toMatchObject({ status: 'refused', position: 1, owner: ben.owner })
  })

  test('keeps its place if it has joined, and passes dead waiters over in several calls', async () => {
    const lock = await sharedLock()
    const [ada, ben] = [caller('ada'), caller('ben')]
    const dead = Array.from({ length: 300 }, (_, i) => caller(`dead ${i}`, { ttl: 1, joinedAgo: 500 - i }))
    await lock.given({ holder: ada, waiters: [...dead, ben] })
    expect(await lock.acquire(ben, { mode: 0 })).toMatchObject({ status: 'refused', position: 301 })
    await lock.lapse()
    expect((await lock.acquire(caller('cyd'), { mode: 0 })).status).toBe('unfinished')
    expect(await lock.acquire(ben, { mode: 0 })).toMatchObject({ status: 'succeeded' })
  })

  test.each([
    { kind: 'semaphore', wants: '1/2', group: '' },
    { kind: 'semaphore with groups', wants: '1/2', group: ';;;a' },
    { kind: 'read-write lock', wants: '1/999999999', group: '' },
  ])('admits those who fit before it counts ($kind)', async ({ kind, wants, group }) => {
    const lock = kind === 'read-write lock' ? await TestSemaphore.readWrite() : await TestSemaphore.on()
    const all = kind === 'read-write lock' ? '1000000000/1000000000' : `2/2${group}`
    const asking = (name: string) => asker(anonymous(name, { ttl: 60_000 }), `${wants}${group}`)
    const [holder, ada, ben, cyd] = [asker(anonymous('holder'), all), ...['ada', 'ben', 'cyd'].map(asking)] as Asker[]
    await plainRedis().subscribe(...[ada!, ben!].map(({ client }) => `lock:inbox:${client}`))
    await lock.acquire(holder!)
    for (const who of [ada!, ben!]) expect((await lock.acquire(who, 2)).status).toBe('refused')
    expect(await lock.acquire(cyd!, 2)).toEqual({ status: 'full', waiters: 2 })
    await lock.lapse(holder!)
    const reads = kind === 'read-write lock'
    expect(await lock.acquire(cyd!, 0)).toMatchObject(reads ? { status: 'succeeded' } : { status: 'full', waiters: 0 })
    expect((await lock.state()).holders).toEqual([ada!.id, ben!.id, ...(reads ? [cyd!.id] : [])].sort())
  })
})

describe('numbers of permits', () => {
  test('the smallest free ones, in the record of the hold; freed by release, leave, force and lapse', async () => {
    const semaphore = await TestSemaphore.on()
    const [a, b, c] = [1, 2, 1].map((wants, i) => asker(anonymous(`caller ${i}`), `${wants}/4s`))
    const slots = () => semaphore.redis.hget(semaphore.names.lock, 'slots')
    const numbers = async ({ id }: { id: string }) =>
      / \d+\/\d+s([\d.]+) /.exec((await semaphore.redis.hget(semaphore.names.lock, id))!)?.[1]
    for (const who of [a!, b!, c!]) await semaphore.acquire(who)
    expect(await Promise.all([a!, b!, c!].map(numbers))).toEqual(['0', '1.2', '3'])
    expect(await slots()).toBe('1111')
    await semaphore.release(a!)
    await semaphore.leave(c!, { queued: false })
    expect(await slots()).toBe('011')
    await semaphore.acquire(c!)
    expect(await numbers(c!)).toBe('0')
    await semaphore.lapse(c!)
    await semaphore.acquire(asker(anonymous('big'), '3/4'))
    expect(await slots()).toBe('011')
    await semaphore.forceRelease('a request')
    expect(await slots()).toBe('')
  })
})

describe('callers that ask for none of it', () => {
  test('send claims as before', () => {
    expect(claimOf(anonymous('label', { id: 'i'.repeat(28) }))).toBe(`${'i'.repeat(28)} 0 10000 5000 0 label`)
    const asked = asker(anonymous('label', { id: 'i'.repeat(28) }), '1/2')
    expect(claimOfAsker(asked)).toBe(`${'i'.repeat(28)} 0 10000 5000 0 1/2 label`)
  })
})

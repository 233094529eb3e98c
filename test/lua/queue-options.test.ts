/** Tests what the scripts do for the options of the queue: retained holds, the pace, a full queue, numbers of permits. */
import { describe, expect, test } from 'vitest'
import { eventually, sleep } from '../kit/time.ts'
import { again, anonymous, caller, claimOf } from './callers.ts'
import { asker, claimOf as claimOfAsker, TestSemaphore } from './semaphore.ts'
import { sharedLock } from './test-lock.ts'

describe('a hold that is released before its minHold has passed', () => {
  test('changes its id, and ends at that time: nothing but a forced release finds it', async () => {
    const lock = await sharedLock()
    const holder = caller('holder', { minHold: 60_000 })
    const token = await lock.grant(holder)
    expect(await lock.release(holder)).toEqual({ status: 'released', heard: 0 })
    const text = (await lock.redis.hget(lock.names.lock, 'holder'))!
    expect(text.slice(34, 62)).toBe(`!${holder.id.slice(1)}`)
    expect(text.slice(62)).toMatch(new RegExp(`^ \\d+ 60000m60000,10000,${holder.id[0]} `))
    const { hold, until, owner } = await lock.hash()
    expect({ hold, owner }).toEqual({ hold: holder.id, owner: holder.owner })
    expect(Number(until)).toBe(Math.floor(token / 1000) + 60_000)
    expect(await lock.release(holder)).toEqual({ status: 'ended' })
    expect(await lock.leave(holder, { queued: false })).toBe('absent')
    const { values } = await lock.scripts.run(
      'renew',
      { keys: [lock.names.lock, lock.names.deadlines] },
      { asked: [holder.id, token, 1] },
    )
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
    expect(await semaphore.release(holder)).toEqual(['released', '0'])
    expect((await semaphore.state()).holders).toEqual([`!${holder.id.slice(1)}`])
    expect(await semaphore.redis.hget(semaphore.names.lock, 'slots')).toBe('1')
    expect((await semaphore.acquire(asker(anonymous('big'), '2/2'))).status).toBe('refused')
    await eventually(async () => (await semaphore.acquire(asker(anonymous('big'), '2/2'))).status === 'succeeded')
    expect(await semaphore.redis.hget(semaphore.names.lock, 'slots')).toBe('')
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

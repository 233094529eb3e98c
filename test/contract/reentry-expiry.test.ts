/** Tests that a re-entry may extend the time until the lock expires, and never shortens it. */
import { describe, expect, test } from 'vitest'
import { client, clients, freshKey } from '../kit/redis.ts'
import { sleep } from '../kit/time.ts'

describe('the expiry of the lock', () => {
  test('is raised by a re-entry whose lease is longer: the outer lease stays held', async () => {
    const [one, two] = clients(2)
    const key = freshKey()
    const outer = await one!.lock(key, { owner: 'me', lease: 800 })
    const inner = await one!.lock(key, { owner: 'me', lease: 8_000 })
    expect((await two!.inspect(key)).ttl).toBeGreaterThan(4_000)
    await sleep(1_000)
    expect([outer.held, inner.held]).toEqual([true, true])
    expect(await two!.tryLock(key)).toBeNull()
    expect(await inner.release()).toBe(true)
    expect(outer.held).toBe(true)
    expect((await two!.inspect(key)).ttl).toBeGreaterThan(2_000)
    expect(await outer.release()).toBe(true)
    expect(await two!.isLocked(key)).toBe(false)
  })

  test('is raised inside using, too', async () => {
    const locks = client()
    const result = await locks.using(freshKey(), { lease: 800 }, async outer => {
      const inner = await locks.lock(outer.key, { lease: 8_000 })
      await sleep(1_000)
      expect([outer.held, inner.held]).toEqual([true, true])
      return 'kept'
    })
    expect(result).toBe('kept')
  })

  test('is raised for the lock, but not for another client’s hold, which has its own lease', async () => {
    const [one, two] = clients(2)
    const key = freshKey()
    const outer = await one!.lock(key, { owner: 'me', lease: 5_000 })
    await two!.lock(key, { owner: 'me', lease: 20_000 })
    await outer.renew(1)
    expect(outer.remaining()).toBeLessThan(5_000)
    expect((await two!.inspect(key)).ttl).toBeGreaterThan(10_000)
  })

  test('is never shortened by a re-entry with a shorter lease, nor by the end of that re-entry', async () => {
    const [one, two] = clients(2)
    const key = freshKey()
    const outer = await one!.lock(key, { owner: 'me', lease: 20_000 })
    const inner = await two!.lock(key, { owner: 'me', lease: 200 })
    expect((await two!.inspect(key)).ttl).toBeGreaterThan(10_000)
    await inner.release()
    expect((await two!.inspect(key)).ttl).toBeGreaterThan(10_000)
    expect(outer.remaining()).toBeGreaterThan(10_000)
    const abandoned = await two!.lock(key, { owner: 'me', lease: 200 })
    await sleep(400)
    expect(outer.held).toBe(true)
    expect(await two!.isLocked(key)).toBe(true)
    await abandoned.release()
    expect(await outer.release()).toBe(true)
  })

  test('is kept by a renewed inner hold after the outer one was released', async () => {
    const [one, two] = clients(2)
    const key = freshKey()
    const outer = await one!.lock(key, { owner: 'me', lease: 600 })
    const inner = await one!.lock(key, { owner: 'me', lease: 600, renew: true })
    await outer.release()
    await sleep(1_500)
    expect(inner.held).toBe(true)
    expect(await two!.tryLock(key)).toBeNull()
    expect(await inner.release()).toBe(true)
  })
})

/**
 * Tests that functions which take the same lock may call each other: the inner call re-enters, and the outermost
 * release frees the lock.
 */
import { expect, test } from 'vitest'
import type { Lease } from '../../../src/index.ts'
import { client, freshKey, nothingLeft, plainRedis } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'

test.each([true, false])('two layers of nested functions take a lock again (fair: %s)', async fair => {
  const key = freshKey()
  const [locks, stranger] = [client({ fair }), client()]
  const held: Lease[] = []

  async function audit(): Promise<string> {
    return locks.using(key, async lease => {
      held.push(lease)
      expect((await stranger.inspect(key)).holds).toBe(3)
      return 'done'
    })
  }
  async function post(): Promise<string> {
    return locks.using(key, async lease => {
      held.push(lease)
      await sleep(1)
      return audit()
    })
  }
  const result = await locks.using(key, async lease => {
    held.push(lease)
    const inner = await post()
    // The two inner layers have released their leases, but the lock is still held.
    expect(await stranger.tryLock(key)).toBeNull()
    expect(await stranger.inspect(key)).toMatchObject({ holds: 1, owner: lease.owner })
    return inner
  })

  expect(result).toBe('done')
  expect(held.map(({ via }) => via)).toEqual(['immediate', 'reentry', 'reentry'])
  expect(new Set(held.map(({ owner }) => owner)).size).toBe(1)
  expect(new Set(held.map(({ fencingToken }) => fencingToken)).size).toBe(1)
  expect(new Set(held.map(({ id }) => id)).size).toBe(3)
  await nothingLeft(plainRedis(), stranger, key)
})

test('wrapped functions of one key may call each other while others wait for it', async () => {
  const key = freshKey()
  const locks = client({ fair: true })
  const log: string[] = []
  const inner = locks.wrap(key, async (name: string) => {
    log.push(`${name} in`)
    await sleep(1)
    log.push(`${name} out`)
  })
  const outer = locks.wrap(key, async (name: string) => {
    log.push(`${name} begins`)
    await inner(name)
    log.push(`${name} ends`)
  })
  const names = ['a', 'b', 'c', 'd']
  await Promise.all(names.map(name => outer(name)))
  expect(log).toEqual(names.flatMap(name => ['begins', 'in', 'out', 'ends'].map(step => `${name} ${step}`)))
})

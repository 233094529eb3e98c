/** Tests that using and wrap run a function under the lock, always release the lock, and report the first error. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import { type Lease, LockArgumentError, LockClosedError, LockLostError, type LockOptions } from '../../src/index.ts'
import { rejection } from '../kit/outcomes.ts'
import { ownPlace } from '../kit/place.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { Room } from '../kit/witness.ts'

describe('using', () => {
  test('returns what fn returns, awaited or not', async ({ locks, key }) => {
    expect(await locks.using(key, () => 'sync')).toBe('sync')
    expect(await locks.using(key, async () => 'async')).toBe('async')
    expect(await locks.using(key, () => undefined)).toBeUndefined()
  })

  test('fn runs with a lease that is held, and that is no longer held afterwards', async ({ locks, key }) => {
    let lease: Lease | undefined
    await locks.using(key, async each => {
      lease = each
      expect(each.held).toBe(true)
      expect(each.key).toBe(key)
      expect(await locks.isLocked(key)).toBe(true)
    })
    expect(lease?.held).toBe(false)
    expect(await lease?.release()).toBe(false)
    expect(await locks.isLocked(key)).toBe(false)
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('mine')
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('mine')
      },
    ],
  ])('fn that %s: rejects with its error and releases', async (_, fn) => {
    const locks = client()
    const key = freshKey()
    await expect(locks.using(key, fn)).rejects.toThrow('mine')
    expect(await locks.isLocked(key)).toBe(false)
  })

  test('I1: calls of several clients run one by one', async ({ key }) => {
    const all = clients(3)
    const room = new Room()
    await Promise.all(Array.from({ length: 30 }, (_, i) => all[i % 3]!.using(key, lease => room.visit(lease))))
    expect(room.most).toBe(1)
    expect(room.tokens).toHaveLength(30)
  })

  test('I8: rejects with LockLostError if the lease ran out while fn ran', async ({ key }) => {
    const error = await rejection(
      client().using(key, { lease: 200 }, () => sleep(400)),
      LockLostError,
    )
    expect(error).toMatchObject({ code: 'ERR_LOCK_LOST', key })
  })

  test('I8: rejects with LockLostError if the hold was taken away, even if that was not noticed yet', async () => {
    const [one, two] = clients(2)
    const key = freshKey()
    await rejection(
      one!.using(key, async () => {
        await two!.forceRelease(key)
      }),
      LockLostError,
    )
  })

  test('fn’s own error takes precedence over the loss', async () => {
    const run = client().using(freshKey(), { lease: 200 }, async () => {
      await sleep(400)
      throw new Error('mine')
    })
    await expect(run).rejects.toThrow('mine')
  })

  describe('and fn ends by its signal', () => {
    // This test fails if `?.name === 'AbortError'` becomes `=== undefined` in src/using.ts: it rejects with the AbortError.
    test('rejects with LockLostError, whose cause is the AbortError', async ({ locks, key }) => {
      const run = locks.using(key, { lease: 200 }, ({ signal }) => pause(30_000, undefined, { signal }))
      const error = await rejection(run, LockLostError)
      expect(error).toMatchObject({ key, cause: { name: 'AbortError', cause: { code: 'ERR_LOCK_LOST' } } })
    })

    test('rejects with LockLostError, whose cause is the reason of the signal, if fn throws that', async ({
      locks,
      key,
    }) => {
      let reason: LockLostError | undefined
      const run = locks.using(key, async ({ signal }) => {
        await locks.forceRelease(key)
        await eventually(() => signal.aborted)
        reason = signal.reason
        signal.throwIfAborted()
      })
      const error = await rejection(run, LockLostError)
      expect(error.cause).toBe(reason)
      expect(error.message).toBe(reason?.message)
    })

    test('rejects with LockClosedError if close ended the hold', async ({ locks, key }) => {
      const run = locks.using(key, async ({ signal }) => {
        void locks.close()
        await pause(30_000, undefined, { signal })
      })
      expect(await rejection(run, LockClosedError)).toMatchObject({ key, cause: { name: 'AbortError' } })
    })

    test('the error of fn stays if fn was aborted while the hold lasted', async ({ locks, key }) => {
      const run = locks.using(key, () => pause(30_000, undefined, { signal: AbortSignal.abort() }))
      expect(await rejection(run, Error)).toMatchObject({ name: 'AbortError' })
    })
  })
})

describe('a release that fails hides neither fn’s result nor its error', () => {
  const ways: [string, LockOptions, number][] = [
    ['outlives the release', {}, 500],
    ['ends before the release is given up', { lease: 3_000 }, 8_000],
  ]

  test.each(ways)('fn’s error is reported if the lease %s', async (_, options, outageTimeout) => {
    const own = await ownPlace()
    const locks = client({ outageTimeout }, own.source())
    const run = locks.using(freshKey(), options, async lease => {
      await eventually(() => lease.held)
      await own.kill()
      throw new Error('mine')
    })
    await expect(run).rejects.toThrow('mine')
  })

  test.each(ways)('fn’s result is returned if the lease %s', async (_, options, outageTimeout) => {
    const own = await ownPlace()
    const locks = client({ outageTimeout }, own.source())
    const run = locks.using(freshKey(), options, async lease => {
      await own.kill()
      expect(lease.held).toBe(true)
      return 'result'
    })
    expect(await run).toBe('result')
  })
})

describe('wrap', () => {
  test('keeps fn’s signature: arguments, this and result', async ({ locks }) => {
    const account = {
      balance: 10,
      add: locks.wrap(freshKey(), async function (this: { balance: number }, amount: number, twice?: boolean) {
        this.balance += twice ? 2 * amount : amount
        return this.balance
      }),
    }
    expect(await account.add(5)).toBe(15)
    expect(await account.add(5, true)).toBe(25)
  })

  test('I1: runs under the lock of its key', async ({ one, two, key }) => {
    let inside = 0
    let most = 0
    const work = async () => {
      most = Math.max(most, ++inside)
      await sleep(5)
      inside -= 1
    }
    const wrapped = [one.wrap(key, work), two.wrap(key, work)]
    await Promise.all(Array.from({ length: 10 }, (_, i) => wrapped[i % 2]!()))
    expect(most).toBe(1)
    expect(await one.isLocked(key)).toBe(false)
  })

  test('a key function derives the key from the arguments', async ({ locks }) => {
    const base = freshKey()
    const keys: string[] = []
    locks.on('acquired', event => keys.push(event.key))
    const wrapped = locks.wrap(
      (id: number, name: string) => `${base}:${id}:${name}`,
      async (id: number, name: string) => `${id} ${name}`,
    )
    expect(await Promise.all([wrapped(1, 'a'), wrapped(2, 'b')])).toEqual(['1 a', '2 b'])
    expect(keys.sort()).toEqual([`${base}:1:a`, `${base}:2:b`])
  })

  test('a key function that throws, or returns a bad key, rejects the call; fn does not run', async ({ locks }) => {
    let ran = false
    const fn = async () => {
      ran = true
    }
    const throwing = locks.wrap(() => {
      throw new Error('no key')
    }, fn)
    await expect(throwing()).rejects.toThrow('no key')
    const empty = locks.wrap(() => '', fn)
    await rejection(empty(), LockArgumentError)
    const none = locks.wrap(() => undefined as unknown as string, fn)
    await rejection(none(), LockArgumentError)
    expect(ran).toBe(false)
  })

  test('with a synchronous fn, returns a promise of its result or of its error', async ({ locks, key }) => {
    expect(await locks.wrap(key, (n: number) => n + 1)(1)).toBe(2)
    const failing = locks.wrap(key, () => {
      throw new Error('mine')
    })()
    await expect(failing).rejects.toThrow('mine')
    expect(await locks.isLocked(key)).toBe(false)
  })

  test('nested calls re-enter', async ({ locks, key }) => {
    const inner = locks.wrap(key, async (n: number) => n * 2, { timeout: 2_000 })
    const outer = locks.wrap(key, async (n: number) => (await inner(n)) + 1)
    expect(await outer(5)).toBe(11)
  })
})

/**
 * Tests how the options `signal` and `timeout` end a wait without a grant. Also tests that such a wait leaves nothing
 * behind.
 */
import { getEventListeners } from 'node:events'
import { describe, expect } from 'vitest'
import { type LockOptions, LockTimeoutError } from '../../src/index.ts'
import { CLIENT_ID_LENGTH } from '../../src/kind.ts'
import { kindsHere } from '../kit/kinds.ts'
import { promptly, reasonOf, rejection, settles } from '../kit/outcomes.ts'
import { park, queueOf } from '../kit/parking.ts'
import { place } from '../kit/place.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

const reasons: [string, unknown][] = [
  ['the default', undefined],
  ['an Error', new Error('mine')],
  ['a string', 'enough'],
  ['an object', { why: 'enough' }],
  ['0', 0],
  ['false', false],
  ['null', null],
]

const ways: [string, LockOptions][] = [
  ['unfair', { fair: false }],
  ['fair', { fair: true }],
  ['fairAfter', { fair: false, fairAfter: 0 }],
]

describe('a signal that is aborted already', () => {
  test.each(reasons)('rejects with exactly its reason, at once, with Redis out of reach: %s', async (_, reason) => {
    const locks = client({}, place().sourceToNobody())
    const signal = AbortSignal.abort(reason)
    const key = freshKey()
    expect(await promptly(reasonOf(locks.lock(key, { signal })))).toBe(signal.reason)
    expect(await promptly(reasonOf(locks.tryLock(key, { signal, timeout: 5 })))).toBe(signal.reason)
    expect(await promptly(reasonOf(locks.using(key, { signal }, () => {})))).toBe(signal.reason)
    const wrapped = locks.wrap(key, async () => {}, { signal })
    expect(await promptly(reasonOf(wrapped()))).toBe(signal.reason)
  })
})

describe.each(kindsHere)('a signal that aborts while the call waits ($kind)', ({ client, clients }) => {
  test.each(reasons)('rejects with exactly its reason: %s', async (_, reason) => {
    const [holder, waiter] = clients(2)
    const key = freshKey()
    await holder!.lock(key)
    for (const [, options] of ways) {
      const controller = new AbortController()
      const waits = waiter!.lock(key, { ...options, signal: controller.signal })
      waits.catch(() => {})
      await sleep(30)
      controller.abort(reason)
      expect(await promptly(reasonOf(waits))).toBe(controller.signal.reason)
    }
  })

  test.each(ways)('I6: %s: settles at once, even with Redis out of reach', async (_, options) => {
    const locks = client({}, place().sourceToNobody())
    const controller = new AbortController()
    const waits = locks.lock(freshKey(), { ...options, signal: controller.signal })
    waits.catch(() => {})
    await sleep(50)
    controller.abort('enough')
    expect(await promptly(reasonOf(waits))).toBe('enough')
  })

  test.each(ways)(
    '%s: a grant that came a moment earlier is kept, unless a listener of its own acquired event aborts',
    async (_, options) => {
      const [locks, other] = clients(2)
      const key = freshKey()
      const controller = new AbortController()
      const waits = locks!.lock(key, { ...options, signal: controller.signal, timeout: 5_000 })
      locks!.once('acquired', () => queueMicrotask(() => controller.abort()))
      const lease = await waits
      expect([lease.held, await lease.release()]).toEqual([true, true])

      const again = new AbortController()
      locks!.once('acquired', () => again.abort('enough'))
      expect(await reasonOf(locks!.lock(key, { ...options, signal: again.signal }))).toBe('enough')
      expect((await promptly(other!.lock(key))).held).toBe(true)
      for (const each of [controller.signal, again.signal]) expect(getEventListeners(each, 'abort')).toEqual([])
    },
  )

  test('I4: the next unfair waiter of the same client is unaffected', async ({ key }) => {
    const [holder, waiter] = clients(2)
    const lease = await holder!.lock(key)
    const controller = new AbortController()
    const first = waiter!.lock(key, { signal: controller.signal })
    first.catch(() => {})
    const second = waiter!.lock(key)
    await eventually(() => waiter!.stats().waiting === 2)
    await sleep(50)
    controller.abort()
    await lease.release()
    expect((await promptly(second)).held).toBe(true)
  })

  test('I4: a wake-up that reaches an aborted waiter is passed on to the next waiter', async ({ key }) => {
    const [holder, one, two] = clients(3)
    for (let round = 0; round < 20; round++) {
      const lease = await holder!.lock(key)
      const controller = new AbortController()
      const first = one!.lock(key, { signal: controller.signal, fair: round % 2 === 0 })
      const second = two!.lock(key, { fair: round % 2 === 0 })
      await eventually(() => one!.stats().waiting === 1 && two!.stats().waiting === 1)
      const released = lease.release()
      if (round % 4 < 2) await sleep(0)
      controller.abort()
      const lost = await first.catch(() => undefined)
      await released
      await lost?.release()
      await (await promptly(second)).release()
    }
    await eventually(async () => !(await holder!.isLocked(key)))
  })

  test('I7: a fair waiter leaves the queue, and the next keeps its turn', async ({ key }) => {
    const [holder, one, two] = clients(3)
    const lease = await holder!.lock(key)
    const controller = new AbortController()
    const first = await park(one!, key, { fair: true, signal: controller.signal })
    const second = await park(two!, key, { fair: true, owner: 'second' })
    controller.abort()
    expect(await promptly(reasonOf(first.lease))).toBe(controller.signal.reason)
    const { waiters } = await queueOf(holder!, key, 1)
    expect(waiters[0]!.owner).toBe('second')
    await lease.release()
    expect((await promptly(second.lease)).via).toBe('handoff')
  })

  test('I7: an aborted waiter leaves nothing behind, neither a listener on the signal nor a channel', async () => {
    const [holder, waiter] = clients(2)
    const key = freshKey()
    const { id } = await holder!.lock(key)
    const admin = place().admin()
    // In a cluster, the holder also subscribes to its own inbox channel for this lock, which the test must not count.
    // The name of that channel ends with the beginning of the hold's id.
    const ofHolder = `:inbox:${id.slice(0, CLIENT_ID_LENGTH)}`
    const channels = async () => (await admin.channels(`*${key}*`)).filter(name => !name.endsWith(ofHolder))
    const controller = new AbortController()
    const waits = waiter!.lock(key, { signal: controller.signal })
    waits.catch(() => {})
    await eventually(async () => (await channels()).length > 0)
    controller.abort()
    await eventually(async () => (await channels()).length === 0)
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
    expect(waiter!.stats().waiting).toBe(0)
  })
})

describe('timeout', () => {
  test.each(ways)(
    '%s: after the timeout and not before, lock rejects with LockTimeoutError and tryLock resolves to null',
    async (_, options) => {
      const [holder, waiter] = clients(2)
      const key = freshKey()
      await holder!.lock(key)
      const begin = performance.now()
      const error = await rejection(waiter!.lock(key, { ...options, timeout: 250 }), LockTimeoutError)
      expect(error.waited).toBeGreaterThanOrEqual(250)
      expect(performance.now() - begin).toBeGreaterThanOrEqual(250)
      const middle = performance.now()
      expect(await waiter!.tryLock(key, { ...options, timeout: 250 })).toBeNull()
      expect(performance.now() - middle).toBeGreaterThanOrEqual(250)
      await queueOf(holder!, key, 0)
    },
  )

  test.each(ways)('%s: a grant within the timeout counts', async (_, options) => {
    const [holder, waiter] = clients(2)
    const key = freshKey()
    const lease = await holder!.lock(key)
    const waits = waiter!.tryLock(key, { ...options, timeout: 15_000 })
    await sleep(100)
    await lease.release()
    expect((await waits)?.held).toBe(true)
    await sleep(100)
    expect((await waits)?.held).toBe(true)
  })

  test.each(ways)('%s: 0 is a single attempt', async (_, options) => {
    const [holder, other] = clients(2)
    const key = freshKey()
    const lease = await holder!.lock(key)
    await promptly(rejection(other!.lock(key, { ...options, timeout: 0 }), LockTimeoutError))
    expect(await promptly(other!.tryLock(key, { ...options, timeout: 0 }))).toBeNull()
    expect((await holder!.inspect(key)).waiters).toEqual([])
    await lease.release()
    const second = await other!.lock(key, { ...options, timeout: 0 })
    expect(second.held).toBe(true)
    await second.release()
    expect((await other!.tryLock(key, { ...options, timeout: 0 }))?.held).toBe(true)
  })

  test.each(ways)('I7: %s: a call that times out takes nothing from the callers behind it', async (_, options) => {
    const [holder, one, two] = clients(3)
    const key = freshKey()
    const lease = await holder!.lock(key)
    await rejection(one!.lock(key, { ...options, timeout: 200 }), LockTimeoutError)
    const waits = two!.lock(key, options)
    expect(await settles(waits, 100)).toBe(false)
    await lease.release()
    expect((await promptly(waits)).held).toBe(true)
  })
})

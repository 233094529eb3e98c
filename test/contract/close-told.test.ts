/**
 * Tests that close notifies all holders before it ends their holds, and that `drain` gives the holders time to release.
 */
import { describe, expect } from 'vitest'
import { type Lock, LockArgumentError, type LockClient, LockClosedError, LockLostError } from '../../src/index.ts'
import { kindsHere } from '../kit/kinds.ts'
import { heard, promptly, rejection, settles } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { place } from '../kit/place.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

/** A time in ms that is longer than any test takes. */
const LONG = 60_000

type LockOf = (locks: LockClient, key: string) => Lock
const [mutex, read, write]: LockOf[] = [
  (locks, key) => locks.mutex(key),
  (locks, key) => locks.readWrite(key).read,
  (locks, key) => locks.readWrite(key).write,
]
/** Each lock with the lock inside which its calls re-enter. */
const reentries: { name: string; outer: LockOf; inner?: LockOf }[] = [
  { name: 'mutex', outer: mutex! },
  ...(kindsHere.length > 1
    ? [
        { name: 'write in write', outer: write! },
        { name: 'read in write', outer: write!, inner: read! },
        { name: 'read in read', outer: read! },
      ]
    : []),
]

describe('I1, I8: a holder is notified before another caller can hold', () => {
  test.for(kindsHere.flatMap(each => ['fair', 'unfair'].map(way => ({ ...each, way }))))(
    '$way ($kind)',
    async ({ way, clients }, { key }) => {
      const [one, two] = clients(2)
      const lease = await one!.lock(key)
      const waiting = way === 'fair' ? await park(two!, key, { fair: true }) : await park(two!, key)
      const order: string[] = []
      lease.signal.addEventListener('abort', () => order.push(`aborted, held ${lease.held}`))
      one!.on('lost', () => order.push('lost'))
      const granted = waiting.lease.then(() => order.push('granted'))
      await one!.close()
      await promptly(granted)
      expect(order).toEqual(['aborted, held false', 'lost', 'granted'])
    },
  )

  test('before anything is sent: within the call to close', async () => {
    const { source, proxy } = await place().proxied()
    const [locks, other] = [client({}, source), client()]
    const leases = [await locks.lock(freshKey()), await locks.lock(freshKey(), { lease: 20_000 })]
    const signals = leases.map(lease => lease.signal)
    proxy.hold('up')
    const closed = locks.close()
    for (const [i, lease] of leases.entries()) {
      expect(lease.held).toBe(false)
      expect(signals[i]?.reason).toBeInstanceOf(LockClosedError)
      expect(signals[i]?.reason).toMatchObject({ code: 'ERR_LOCK_CLOSED', key: lease.key })
      expect(await other.isLocked(lease.key)).toBe(true)
    }
    proxy.heal()
    await closed
    for (const lease of leases) expect(await other.isLocked(lease.key)).toBe(false)
  })

  test('every lease is notified once, re-entrant ones too, and all are notified before any is released', async () => {
    const locks = client()
    const [key, another] = [freshKey(), freshKey()]
    const leases = [await locks.lock(key, { owner: 'me' }), await locks.lock(key, { owner: 'me' })]
    leases.push(await locks.lock(another))
    const lost = heard(locks, 'lost')
    const released = heard(locks, 'released')
    await Promise.all([locks.close(), locks.close()])
    expect(lost.map(event => event.key).sort()).toEqual([key, key, another].sort())
    for (const { error } of lost) expect(error).toBeInstanceOf(LockClosedError)
    expect(released).toEqual([])
    expect(locks.stats()).toMatchObject({ holding: 0, lost: 3, released: 0 })
    for (const lease of leases) expect(lease.signal.reason).toBeInstanceOf(LockClosedError)
  })

  test('with Redis out of reach: holders are notified at once, and the lock ends with its lease', async () => {
    const { source, proxy } = await place().proxied()
    const locks = client({}, source)
    const lost = heard(locks, 'lost')
    const lease = await locks.lock(freshKey())
    const { signal } = lease
    proxy.refuse()
    proxy.cut()
    const closed = locks.close()
    expect([lease.held, signal.aborted, lost.length]).toEqual([false, true, 1])
    await closed
    expect(lost).toHaveLength(1)
  })
})

describe('using', () => {
  test('rejects if its function was still running', async ({ locks, other, key }) => {
    const wrapped = locks.wrap(freshKey(), async () => await sleep(300))
    const runs = [
      locks.using(key, async () => await sleep(300)),
      wrapped(),
      locks.using(freshKey(), async lease => {
        await locks.close()
        return lease.held
      }),
    ]
    const reasons = await Promise.all(runs.map(run => rejection(run, LockClosedError)))
    expect(reasons[0]).toMatchObject({ code: 'ERR_LOCK_CLOSED', key })
    expect(await other.isLocked(key)).toBe(false)
  })

  test('resolves if its function had ended: its release is under way', async () => {
    const { source, proxy } = await place().proxied()
    const locks = client({}, source)
    const lost = heard(locks, 'lost')
    let ran = false
    const run = locks.using(freshKey(), () => {
      proxy.hold('down')
      ran = true
      return 'done'
    })
    await eventually(() => ran)
    expect(await settles(run, 50)).toBe(false)
    const closed = locks.close()
    proxy.heal()
    expect(await promptly(run)).toBe('done')
    await closed
    expect(lost).toEqual([])
  })
})

test('a renewal that is under way rejects with LockLostError', async () => {
  const { source, proxy } = await place().proxied()
  const locks = client({}, source)
  const lease = await locks.lock(freshKey())
  proxy.hold('down')
  const renewing = rejection(lease.renew(), LockLostError)
  await sleep(50)
  const closed = locks.close()
  expect((await promptly(renewing)).cause).toBeInstanceOf(LockClosedError)
  proxy.heal()
  await closed
})

describe('close({ drain })', () => {
  test('ends early, as soon as nothing is held; no holder loses its lock', async ({ locks, other }) => {
    const lost = heard(locks, 'lost')
    const lease = await locks.lock(freshKey())
    const run = locks.using(freshKey(), async () => {
      await sleep(200)
      return 'done'
    })
    await eventually(() => locks.stats().holding === 2)
    const closed = locks.close({ drain: LONG })
    expect(await run).toBe('done')
    expect(await settles(closed, 50)).toBe(false)
    expect(lease.held).toBe(true)
    expect(await lease.release()).toBe(true)
    await promptly(closed)
    expect(lost).toEqual([])
    expect(await other.isLocked(lease.key)).toBe(false)
  })

  test.each(kindsHere)('a hold that is not released in time is lost, as without drain ($kind)', async ({ clients }) => {
    const [locks, other] = clients(2)
    const lost = heard(locks!, 'lost')
    const lease = await locks!.lock(freshKey())
    const run = rejection(
      locks!.using(freshKey(), ({ signal }) => new Promise<void>(end => signal.addEventListener('abort', () => end()))),
      LockClosedError,
    )
    await eventually(() => locks!.stats().holding === 2)
    const begin = performance.now()
    await locks!.close({ drain: 300 })
    expect(performance.now() - begin).toBeGreaterThanOrEqual(299)
    expect(lease.signal.reason).toBeInstanceOf(LockClosedError)
    await promptly(run)
    expect(lost).toHaveLength(2)
    expect(await other!.isLocked(lease.key)).toBe(false)
  })

  test.for(kindsHere)(
    'refuses new calls and rejects waiters at once, and they leave nothing in the queue ($kind)',
    async ({ clients }, { key }) => {
      const [holder, locks] = clients(2)
      await holder!.lock(key)
      const queued = await park(locks!, key, { fair: true })
      const waits = [queued.lease, locks!.lock(key), locks!.tryLock(key, { timeout: LONG })]
      const outcomes = waits.map(wait => rejection(wait, LockClosedError))
      const lease = await locks!.lock(freshKey())
      const closed = locks!.close({ drain: LONG })
      for (const outcome of outcomes) await promptly(outcome)
      const calls = [
        locks!.lock(freshKey()),
        locks!.tryLock(lease.key),
        locks!.using(freshKey(), () => 'ran'),
        locks!.inspect(key),
        locks!.isLocked(key),
        locks!.forceRelease(key),
      ]
      for (const call of calls) await promptly(rejection(call, LockClosedError))
      await eventually(async () => (await holder!.inspect(key)).waiters.length === 0)
      expect(lease.held).toBe(true)
      await lease.release()
      await promptly(closed)
    },
  )

  describe.each(reentries)('a call re-enters ($name)', ({ outer, inner = outer }) => {
    test.each(['in its context', 'by the name of its owner'])('%s', async way => {
      const { source, proxy } = await place().proxied()
      const locks = client({}, source)
      const [key, another] = [freshKey(), freshKey()]
      const named = way === 'in its context' ? {} : { owner: 'me' }
      let closed: Promise<void> | undefined
      const run = outer(locks, key).using(named, async lease => {
        const underWay = inner(locks, key).lock(named)
        closed = locks.close({ drain: LONG })
        for (const other of [another, key]) await rejection(outer(locks, other).lock({ owner: 'you' }), LockClosedError)
        proxy.cut()
        const within = [underWay, inner(locks, key).tryLock(named), inner(locks, key).lock({ ...named, fair: true })]
        for (const each of await promptly(Promise.all(within))) {
          expect(each).toMatchObject({ fencingToken: lease.fencingToken, via: 'reentry' })
          expect(await each?.release()).toBe(true)
        }
        return inner(locks, key).lock(named)
      })
      // The last of these holds outlasts the outer one, and can be entered as long as it lasts.
      const last = await run
      const again = inner(locks, key).lock({ owner: last.owner })
      expect(await (await again).release()).toBe(true)
      expect(await settles(closed!, 50)).toBe(false)
      expect(await last.release()).toBe(true)
      await promptly(closed!)
      await rejection(inner(locks, key).lock({ owner: last.owner }), LockClosedError)
    })
  })

  test('when called again, uses the earlier of the two deadlines', async ({ locks }) => {
    const lost = heard(locks, 'lost')
    const lease = await locks.lock(freshKey())
    const closed = locks.close({ drain: LONG })
    void locks.close({ drain: 2 * LONG })
    await sleep(50)
    expect(lease.held).toBe(true)
    const again = locks.close()
    expect(lease.held).toBe(false)
    await promptly(Promise.all([closed, again]))
    expect(lost).toHaveLength(1)
  })

  test('with Redis out of reach: ends when the lease ends, or at its deadline', async () => {
    const { source, proxy } = await place().proxied()
    const locks = client({}, source)
    const [short, long] = [await locks.lock(freshKey(), { lease: 500 }), await locks.lock(freshKey())]
    proxy.refuse()
    proxy.cut()
    const begin = performance.now()
    await locks.close({ drain: 1_000 })
    expect(performance.now() - begin).toBeGreaterThanOrEqual(999)
    expect(short.signal.reason).toBeInstanceOf(LockLostError)
    expect(long.signal.reason).toBeInstanceOf(LockClosedError)
  })

  test.each([[-1], [Number.NaN], ['5s'], [Number.POSITIVE_INFINITY]])('refuses %o, and stays open', async drain => {
    const locks = client()
    const error = await rejection(locks.close({ drain: drain as number }), LockArgumentError)
    expect(error).toMatchObject({ option: 'drain', value: drain })
    expect((await locks.lock(freshKey())).held).toBe(true)
  })
})

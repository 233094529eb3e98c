/** Tests which leases are renewed, and for how long. */
import { describe, expect } from 'vitest'
import { LockLostError } from '../../src/index.ts'
import { kindsHere } from '../kit/kinds.ts'
import { aborted, heard, rejection, within } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

describe('automatic renewal', () => {
  test.each(kindsHere)('without `lease`: renewed, beyond several leases ($kind)', async ({ client }) => {
    const [locks, other] = [client({ lease: 1_500 }), client()]
    const renewals = heard(locks, 'renewed')
    const lease = await locks.lock(freshKey())
    await sleep(3_500)
    expect(lease.held).toBe(true)
    expect(lease.remaining()).toBeGreaterThan(0)
    expect(await other.isLocked(lease.key)).toBe(true)
    expect(renewals.length).toBeGreaterThanOrEqual(3)
    for (const event of renewals) expect(event).toEqual({ key: lease.key, fencingToken: lease.fencingToken })
    expect(await lease.release()).toBe(true)
  })

  test('with `lease`: not renewed, the hold ends with it', async ({ locks }) => {
    const renewals = heard(locks, 'renewed')
    const lease = await locks.lock(freshKey(), { lease: 500 })
    await within(2_000, aborted(lease.signal))
    expect(renewals).toEqual([])
  })

  test('with `lease` and renew: true: renewed', async () => {
    const lease = await client().lock(freshKey(), { lease: 600, renew: true })
    await sleep(1_500)
    expect(lease.held).toBe(true)
    expect(lease.remaining()).toBeLessThanOrEqual(600)
  })

  test('without `lease` but renew: false: not renewed', async () => {
    const lease = await client({ lease: 300 }).lock(freshKey(), { renew: false })
    await eventually(() => lease.signal.aborted, 3_000)
  })

  test('of a lease that was granted by hand-off, by wake-up or by re-entry', async () => {
    const [holder, two] = [client(), client({ lease: 1_500 })]
    const [a, b] = [freshKey('a'), freshKey('b')]
    const first = [await holder.lock(a), await holder.lock(b)]
    const queued = await park(two, a, { fair: true })
    const parked = two.lock(b)
    await sleep(100)
    for (const lease of first) await lease.release()
    const leases = await Promise.all([queued.lease, parked])
    leases.push(await two.lock(a, { owner: leases[0].owner }))
    expect(leases.map(lease => lease.via)).toEqual(['handoff', 'wakeup', 'reentry'])
    await sleep(2_500)
    expect(leases.map(lease => lease.held)).toEqual([true, true, true])
  })

  test.each(kindsHere)('of many leases at the same time ($kind)', async ({ client }) => {
    const locks = client({ lease: 2_000 })
    const leases = await Promise.all(Array.from({ length: 300 }, () => locks.lock(freshKey())))
    await sleep(4_400)
    expect(leases.filter(lease => !lease.held)).toEqual([])
  })
})

describe('maxHold', () => {
  test('renewal stops this long after the grant, and the hold ends with its current lease', async () => {
    const locks = client({ lease: 600 })
    const losses = heard(locks, 'lost')
    const begin = performance.now()
    const lease = await locks.lock(freshKey(), { maxHold: 1_200 })
    await sleep(1_000)
    expect(lease.held).toBe(true)
    await eventually(() => lease.signal.aborted, 5_000)
    const held = performance.now() - begin
    expect(held).toBeGreaterThanOrEqual(1_150)
    expect(held).toBeLessThan(3_500)
    expect(lease.signal.reason).toBeInstanceOf(LockLostError)
    expect(losses.map(event => event.key)).toEqual([lease.key])
  })

  test.for(kindsHere)('I4: a waiter gets the lock of a hung holder ($kind)', async ({ client }, { key }) => {
    const [hung, next] = [client({ lease: 300 }), client()]
    await hung.lock(key, { maxHold: 600 })
    const lease = await next.lock(key, { timeout: 10_000 })
    // The waiter may notice the end of the lease itself (`expiry`). If the hung holder's client notices the end first,
    // its release wakes the waiter (`wakeup`).
    expect(['expiry', 'wakeup']).toContain(lease.via)
  })

  test('using rejects with LockLostError when fn runs for longer than maxHold', async () => {
    const locks = client({ lease: 300 })
    const error = await rejection(
      locks.using(freshKey(), { maxHold: 400 }, () => sleep(1_100)),
      LockLostError,
    )
    expect(error.message).toMatch(/ was lost: maxHold was over, and its lease ran out/)
    const fixed = await rejection(
      locks.using(freshKey(), { lease: 200 }, () => sleep(500)),
      LockLostError,
    )
    expect(fixed.message).toMatch(/ was lost: its lease ran out/)
  })

  test('a release before maxHold is an ordinary release', async ({ locks, other }) => {
    const lease = await locks.lock(freshKey(), { maxHold: 10_000 })
    expect(await lease.release()).toBe(true)
    expect(await other.isLocked(lease.key)).toBe(false)
  })

  test('above the range of a timer it sets no limit', async () => {
    const lease = await client().lock(freshKey(), { maxHold: 2_000_000_000 })
    await sleep(200)
    expect(lease.held).toBe(true)
  })
})

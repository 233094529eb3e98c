/** Tests a lease as its holder sees it: how long it counts as held, and what its calls resolve to. */
import { describe, expect } from 'vitest'
import { LockConnectionError, LockLostError } from '../../src/errors.ts'
import { LENGTH, Leases, test } from './leases.ts'
import { now, quiet } from './promises.ts'

const unreachable = new LockConnectionError('out of reach')
/** A time in ms that is longer than any lease in these tests. */
const LONG = 2 * LENGTH

describe('I1 a lease does not count as held after its deadline, even if no timer could run', () => {
  test('its release and its renewal find it lost, and ask nothing', async ({ at }) => {
    const [released, renewed] = [at.hold(), at.hold()]
    at.clock.block(LONG)
    expect(await released.release()).toBe(false)
    await expect(renewed.renew()).rejects.toThrow(LockLostError)
    expect(at.kind.releases.count + at.kind.renewals.count).toBe(0)
    expect(at.gone).toEqual([released.id, renewed.id])
  })
})

describe('release', () => {
  test('that fails rejects with the reason; a second one resolves false', async ({ at }) => {
    const lease = at.hold()
    const [first, second] = [quiet(lease.release()), lease.release()]
    await at.kind.releases.next.fail(unreachable)
    expect([await now(first), await second, await lease.release()]).toEqual([unreachable.of(lease.key), false, false])
    expect(at.table.holds).toBe(0)
  })

  test('I6 that is unanswered at the deadline resolves false; the hold has ended, and is not reported as lost', async () => {
    const at = new Leases()
    const lease = at.hold({ renew: false, lease: 1_000 })
    const released = lease.release()
    await at.clock.advance(996)
    expect(await now(released)).toBe('pending')
    await at.clock.advance(1)
    expect(await now(released)).toBe(false)
    await at.kind.releases.next.answer({ ended: false })
    expect([lease.held, at.gone, at.table.holds]).toEqual([false, [], 0])
  })
})

describe('a renewal that races the release', () => {
  test('I8 and finds the hold gone, because the release ran first, is no loss', async ({ at }) => {
    const lease = at.hold()
    await at.clock.advance(LENGTH / 3)
    const released = lease.release()
    await at.kind.renewals.next.answer(['lost'])
    expect(at.gone).toEqual([])
    await at.kind.releases.next.answer({ ended: true })
    expect(await released).toBe(true)
    expect(lease.signal.aborted).toBe(false)
  })

  test('and prolongs the hold does not revive it', async ({ at }) => {
    const lease = at.hold()
    await at.clock.advance(LENGTH / 3)
    const released = lease.release()
    await at.answerRenewal()
    expect([lease.held, at.renewed]).toEqual([false, []])
    await at.kind.releases.next.answer({ ended: true })
    expect(await released).toBe(true)
    expect(lease.held).toBe(false)
  })
})

describe('renew', () => {
  test('I6 rejects at the deadline, even if its answer never comes', async ({ at }) => {
    const lease = at.hold({ renew: false, lease: 1_000 })
    const renewed = quiet(lease.renew())
    await at.clock.advance(996)
    expect(await now(renewed)).toBe('pending')
    await at.clock.advance(1)
    expect(await now(renewed)).toBeInstanceOf(LockLostError)
  })

  test('rejects with the reason when Redis cannot be asked, and the lease is still held', async ({ at }) => {
    const lease = at.hold()
    const renewed = quiet(lease.renew())
    await at.kind.renewals.next.fail(unreachable)
    expect(await now(renewed)).toEqual(unreachable.of(lease.key))
    expect(lease.held).toBe(true)
    expect(at.gone).toEqual([])
  })

  test('rejects when the lease is released while it is under way', async ({ at }) => {
    const lease = at.hold()
    const renewed = quiet(lease.renew())
    const released = lease.release()
    await at.kind.releases.next.answer({ ended: true })
    await at.answerRenewal()
    expect(await released).toBe(true)
    expect(await now(renewed)).toBeInstanceOf(LockLostError)
  })
})

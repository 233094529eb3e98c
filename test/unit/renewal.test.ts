/** Tests automatic renewal, and that every lease that ends without its release is reported. */
import { describe, expect } from 'vitest'
import { surelyUntil } from '../../src/clock.ts'
import { LockConnectionError, LockLostError } from '../../src/errors.ts'
import { FakeKind } from './fake-kind.ts'
import { LENGTH, Leases, test } from './leases.ts'

const unreachable = new LockConnectionError('out of reach')
const THIRD = LENGTH / 3
/** How many ms before the end of a lease its holder stops relying on it. */
const MARGIN = 2 + LENGTH / 1000

describe('a lease is renewed', () => {
  test('I9 together with all others that are due at about the same time, in one request', async ({ at }) => {
    const early = Array.from({ length: 50 }, () => at.hold().id)
    await at.clock.advance(LENGTH / 20 - 1)
    const soon = at.hold().id
    await at.clock.advance(2)
    const late = at.hold().id
    await at.clock.advance(THIRD)
    expect(at.asked.map(request => request.map(([id]) => id))).toEqual([[...early, soon], [late]])
  })

  test('before longer leases in the same request, however many they are', async ({ at }) => {
    const long = Array.from({ length: 50 }, () => at.hold().id)
    await at.clock.advance(THIRD - 500)
    const short = at.hold({ lease: 120, renew: true }).id
    await at.clock.advance(100)
    expect(at.asked.map(request => request.map(([id]) => id))).toEqual([[short, ...long]])
  })

  test('in time, however many others were granted before and after it, and have ended', async ({ at }) => {
    for (let others = 0; others <= 300; others += 60) {
      for (let i = 0; i < others; i++) void at.hold().release()
      const short = at.hold({ lease: 120, renew: true })
      for (let i = 0; i < others; i++) void at.hold()
      await at.clock.advance(60)
      expect(at.asked.at(-1)).toEqual([[short.id, 120]])
      await at.answerRenewal()
      expect(short.remaining()).toBeGreaterThan(100)
      void short.release()
    }
  })
})

describe('a renewal without an answer', () => {
  test('proves nothing: it is tried again, and the lease is held meanwhile', async ({ at }) => {
    const lease = at.hold()
    await at.clock.advance(THIRD)
    for (let failures = 0; failures < 10; failures++) {
      await at.kind.renewals.next.fail(unreachable)
      expect(lease.held).toBe(true)
      await at.clock.advance(1_000)
    }
    await at.answerRenewal()
    expect(lease.remaining()).toBe(LENGTH - MARGIN)
    expect(at.gone).toEqual([])
  })

  test('I8 is tried until the lease ends, which is lost exactly at its deadline', async ({ at }) => {
    const lease = at.hold()
    const { signal } = lease
    await at.clock.advance(THIRD)
    await at.kind.renewals.next.fail(unreachable)
    for (let passed = THIRD; passed < LENGTH - MARGIN - 1; passed += 1) {
      await at.clock.advance(1)
      for (const call of at.kind.renewals.open) await call.fail(unreachable)
    }
    expect(lease.held).toBe(true)
    expect(signal.aborted).toBe(false)
    await at.clock.advance(1)
    expect(lease.held).toBe(false)
    expect(signal.reason).toBeInstanceOf(LockLostError)
    expect(at.gone).toEqual([lease.id])
  })

  test('I1 changes nothing if its answer comes after the deadline', async ({ at }) => {
    const lease = at.hold()
    await at.clock.advance(LENGTH - MARGIN)
    expect(at.gone).toEqual([lease.id])
    await at.kind.renewals.next.answer([at.clock.now() + LENGTH])
    expect([lease.held, lease.remaining()]).toEqual([false, 0])
    expect(at.renewed).toEqual([])
    expect(at.table.holds).toBe(0)
  })
})

describe('I8 "gone" is final', () => {
  test('the lease is lost at once, its signal gives the reason, and Redis is not asked about it again', async () => {
    const at = new Leases()
    const [lost, kept] = [at.hold(), at.hold()]
    const { signal } = lost
    await at.clock.advance(THIRD)
    await at.kind.renewals.next.answer(['lost', at.clock.now() + LENGTH])
    expect([lost.held, kept.held, at.ended]).toEqual([false, true, []])
    expect(signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', key: lost.key })
    expect(at.gone).toEqual([lost.id])
    await at.clock.advance(THIRD)
    expect(at.asked.at(-1)).toEqual([[kept.id, LENGTH]])
  })

  test('I2 "granted again" is final, too: Redis has another grant under this id, and that grant still has to be ended', async () => {
    const at = new Leases()
    const lease = at.hold({ token: 100 })
    await at.clock.advance(THIRD)
    expect(at.kind.renewals.next.args[0]).toMatchObject([{ hold: { id: lease.id }, token: 100 }])
    await at.kind.renewals.next.answer(['replaced'])
    await at.clock.advance(100)
    expect([lease.held, at.gone, at.ended]).toEqual([false, [lease.id], [lease.id]])
    expect(lease.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST' })
  })

  test('if a message says that a lease is lost, Redis is asked at once, even about a fixed lease', async ({ at }) => {
    const leases = [at.hold(), at.hold({ renew: false })]
    at.doubt(...leases)
    await at.clock.advance(0)
    expect(at.asked).toEqual([
      [
        [leases[0]?.id, LENGTH],
        [leases[1]?.id, 0],
      ],
    ])
    await at.kind.renewals.next.answer(['lost', 'lost'])
    expect(at.gone).toEqual(leases.map(lease => lease.id))
  })

  test('a doubt that proves wrong leaves a fixed lease as it was', async ({ at }) => {
    const lease = at.hold({ renew: false })
    at.doubt(lease)
    await at.clock.advance(0)
    await at.kind.renewals.next.answer([at.clock.now() + 10])
    expect(lease.remaining()).toBe(LENGTH - MARGIN)
    expect(at.renewed).toEqual([])
    await at.clock.advance(LENGTH)
    expect(at.asked.length).toBe(1)
  })

  test.for([true, false])(
    'if a message of the loss comes during a renewal, Redis is asked again after it (renewed: %s)',
    async (renew, { at }) => {
      const lease = at.hold({ renew, via: 'handoff', deadline: at.clock.now() + LENGTH * 0.7 })
      await at.clock.advance(THIRD)
      expect(at.asked.length).toBe(1)
      at.doubt(lease)
      await at.kind.renewals.next.answer([at.clock.now() + LENGTH])
      await at.clock.advance(100)
      expect(at.asked.length).toBe(2)
      await at.kind.renewals.next.answer(['lost'])
      expect(at.gone).toEqual([lease.id])
    },
  )
})

describe('a grant by message, proven from an older request,', () => {
  test.each(['handoff', 'expiry'] as const)('is confirmed soon, so that the full lease counts: %s', async via => {
    const at = new Leases()
    const lease = at.hold({ renew: false, via, deadline: at.clock.now() + LENGTH / 2 })
    await at.clock.advance(100)
    expect(at.asked).toEqual([[[lease.id, 0]]])
    await at.kind.renewals.next.answer([at.clock.now() + LENGTH - 200])
    expect(lease.remaining()).toBe(LENGTH - 200)
  })
})

describe('I1 if the server’s clock was set back, its answer counts only for as long as was asked for:', () => {
  const STEP = 60_000

  test.each([
    ['a renewal', true, LENGTH - MARGIN],
    ['a confirmation', false, LENGTH - MARGIN - 1_000],
  ])('%s', async (_, renew, left) => {
    const at = new Leases()
    const lease = at.hold({ renew })
    await at.clock.advance(1_000)
    at.doubt(lease)
    await at.clock.advance(0)
    await at.kind.renewals.next.answer([at.clock.now() + LENGTH + STEP])
    expect(lease.remaining()).toBe(left)
  })

  test('a confirmation of a grant that arrived late: its lease began when the request was sent', async ({ at }) => {
    const lease = at.hold({ renew: false, deadline: at.clock.now() + LENGTH - 1_500 })
    at.doubt(lease)
    await at.clock.advance(0)
    await at.kind.renewals.next.answer([at.clock.now() + LENGTH + STEP])
    expect(lease.remaining()).toBe(LENGTH - 1_500)
  })

  test('a renewal by the user', async ({ at }) => {
    const lease = at.hold({ renew: false })
    const renewed = lease.renew(2 * LENGTH)
    await at.kind.renewals.next.answer([at.clock.now() + LENGTH + STEP])
    await renewed
    const left = surelyUntil(0, 2 * LENGTH)
    expect(lease.remaining()).toBe(left)
    at.doubt(lease)
    await at.clock.advance(1)
    await at.kind.renewals.next.answer([at.clock.now() + LENGTH + STEP])
    expect(lease.remaining()).toBe(left - 1)
  })
})

// In the client, a hold runs out a moment before it ends in Redis. If its owner re-enters in this moment, Redis keeps
// the old hold. The lock would then stay held after the re-entry ends, unless the client also ends the old hold.
describe('I1 I8 the machine was suspended', () => {
  test.for([true, false])(
    'for longer than a lease: it is lost soon, long before its timer (renew: %o)',
    async (renew, { at }) => {
      const [lease, long] = [at.hold({ renew }), at.hold({ renew, lease: 10 * LENGTH })]
      at.clock.suspend(LENGTH)
      expect(lease.held).toBe(false)
      await at.clock.advance(200)
      expect(at.gone).toEqual([lease.id])
      expect(long.held).toBe(true)
    },
  )

  test('perhaps: no hold counts for longer than by the worse clock, and Redis is asked about all of them, once', async () => {
    const at = new Leases()
    const [lease, fixed] = [at.hold({ key: 'a' }), at.hold({ key: 'b', renew: false, lease: 2 * LENGTH })]
    at.clock.fallBehind(LENGTH)
    const later = at.hold()
    expect([lease.held, later.held]).toEqual([false, true])
    expect(fixed.remaining()).toBeLessThan(LENGTH)
    await at.clock.advance(0)
    const ids = [lease.id, fixed.id, later.id]
    expect(at.asked.flat().map(([id]) => id)).toEqual(expect.arrayContaining(ids))
    const now = at.clock.now()
    // Redis confirms two holds, and the fixed one has less time left than this client had counted.
    const answers = new Map([
      [lease.id, now + LENGTH],
      [fixed.id, now + 1_000],
      [later.id, now + LENGTH],
    ])
    for (const call of at.kind.renewals.open) await call.answer(call.args[0].map(({ hold }) => answers.get(hold.id)!))
    expect(lease.remaining()).toBeGreaterThan(LENGTH - 2 * MARGIN)
    expect(fixed.remaining()).toBeLessThanOrEqual(LENGTH)
    await at.clock.advance(1_000)
    expect(at.asked.flat()).toHaveLength(ids.length)
    expect(at.gone).toEqual([])
  })

  test('perhaps, and Redis does not answer: this costs no lock before its own deadline', async ({ at }) => {
    const lease = at.hold()
    at.clock.fallBehind(10 * LENGTH)
    await at.clock.advance(200)
    expect(lease.held).toBe(false)
    await at.kind.renewals.next.fail(unreachable)
    await at.clock.advance(1_000)
    expect(at.gone).toEqual([])
    await at.answerRenewal()
    expect([lease.held, lease.remaining()]).toEqual([true, LENGTH - MARGIN])
  })

  test('perhaps, while a question was under way: its answer proves nothing, and Redis is asked again', async () => {
    const at = new Leases()
    const lease = at.hold()
    await at.clock.advance(THIRD)
    at.clock.fallBehind(10 * LENGTH)
    await at.answerRenewal()
    expect(lease.held).toBe(false)
    await at.clock.advance(200)
    await at.answerRenewal()
    expect(lease.held).toBe(true)
  })
})

test('I7 only a hold that ran out here is reported as one that Redis may still have and that nobody else will end', async () => {
  const at = new Leases()
  const [out, gone, releasing] = [at.hold({ renew: false, lease: 500 }), at.hold(), at.hold()]
  void releasing.release()
  at.doubt(gone)
  await at.clock.advance(0)
  await at.kind.renewals.next.answer(['lost'])
  await at.clock.advance(2 * LENGTH)
  expect(at.gone.sort()).toEqual([gone.id, out.id].sort())
  expect(at.ended).toEqual([releasing.id, out.id])
})

describe('holds of one holder', () => {
  test('I4 have a lease each: renewing one does not prolong another', async ({ at }) => {
    const outer = at.hold({ key: 'same', token: 7 })
    const inner = at.hold({ key: 'same', token: 7, via: 'reentry', lease: 1_000, renew: false })
    expect(inner.remaining()).toBeLessThan(1_000)
    await at.clock.advance(THIRD)
    await at.answerRenewal()
    expect(outer.remaining()).toBe(LENGTH - MARGIN)
    expect(at.gone).toEqual([inner.id])
  })

  test('I1 a first hold that is gone is not prolonged by another grant', async ({ at }) => {
    const earlier = at.hold({ key: 'same', token: 7, lease: 1_000, renew: false })
    at.hold({ key: 'same', token: 8, via: 'reentry' })
    expect(earlier.remaining()).toBeLessThan(1_000)
  })

  test('I1 if several may hold, a longer re-entry prolongs the hold that Redis has prolonged, and no other of its token', async () => {
    const at = new Leases(new FakeKind({ shared: true }))
    const grant = { key: 'same', token: 7, lease: 1_000, renew: false }
    const [oldest, first] = [at.hold({ ...grant, via: 'handoff' }), at.hold({ ...grant, via: 'handoff' })]
    at.hold({ key: 'same', token: 7, via: 'reentry' })
    expect(Math.max(oldest.remaining(), first.remaining())).toBeLessThan(1_000)
    at.hold({ key: 'same', token: 7, via: 'reentry', around: first.id })
    expect(oldest.remaining()).toBeLessThan(1_000)
    expect(first.remaining()).toBe(LENGTH - MARGIN)
  })
})

describe('I7 nothing is left', () => {
  test('in the table of leases that have ended, however they ended', async ({ at }) => {
    const [released] = [at.hold(), at.hold({ renew: false, lease: 100 }), at.hold()]
    const done = released?.release()
    await at.kind.releases.next.answer({ ended: true })
    await done
    await at.clock.advance(THIRD)
    await at.kind.renewals.next.answer(['lost'])
    expect(at.table.holds).toBe(0)
  })

  test('no timer, after close', async ({ at }) => {
    at.hold()
    at.holding.close()
    expect(at.clock.armed).toBe(0)
  })
})

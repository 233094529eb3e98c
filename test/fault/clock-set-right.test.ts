/**
 * Tests I1 with a server whose clock is slow for a moment, and is then set right. All kinds of lock share the code that
 * computes the client's deadline, so most tests use only one kind. A re-entry is tested with each kind, because each
 * kind has its own script, and that script reports how long the lease lasts.
 */
import { describe, expect } from 'vitest'
import { LockLostError } from '../../src/index.ts'
import { kinds } from '../kit/kinds.ts'
import { outcomeOf } from '../kit/outcomes.ts'
import { frameProxy } from '../kit/proxies.ts'
import { bluntRedis, client, freshKey, test } from '../kit/redis.ts'
import { steppedServer } from '../kit/stepped-server.ts'
import { eventually, sleep } from '../kit/time.ts'

// While the server's clock is a minute slow, a lease seems to last a minute longer. If a holder planned its next
// renewal by that longer lease, it would renew too late: as soon as the clock is set right, the lease has lapsed. Two
// rules prevent this. A holder never relies on a longer lease than it has asked for, and it renews at a fixed pace.
// This test fails if `Math.min(this.#deadline - (this.length * 2) / 3, now + this.length / 3)` becomes `this.#deadline
// - (this.length * 2) / 3` in src/key/hold.ts and `Math.min(deadline, this.#askedUntil)` becomes `deadline` in
// src/key/hold.ts: two callers hold at the same time.
test.each([undefined, 'somebody'])(
  'a holder with renewal renews at a fixed pace, and so keeps the lock: %s',
  async owner => {
    const { url, step } = await steppedServer()
    const [holder, other] = [client({ lease: 1_500 }, url), client({ lease: 1_500, waiterTtl: 900 }, url)]
    const key = freshKey()
    const lease = await holder.lock(key, owner === undefined ? {} : { owner })
    await step(-60_000)
    await sleep(700) // long enough for an automatic renewal
    await step(0)

    const second = await other.tryLock(key, { fair: true, timeout: 4_000 })
    expect([lease.held, second]).toEqual([true, null])
  },
)

describe('a holder counts on its lease for no longer than it has asked for', () => {
  // While the clock is slow, Redis reports too much remaining time for every lease. If a holder believed this, it would
  // still rely on its hold when the clock is right again and the next caller gets the lock. This test fails if
  // `Math.min(deadline, this.#askedUntil)` becomes `deadline` in src/key/hold.ts: for a minute, the holder believes
  // that its lease lasts.
  test('without renewal, after a status check: the holder has lost the lock before the next caller gets it', async () => {
    const { url, step } = await steppedServer()
    const lease = 2_500
    const [holder, other] = [client({ lease }, url), client({ waiterTtl: 900 }, url)]
    const key = freshKey()
    const held = await holder.lock(key, { renew: false })
    await step(-60_000)
    // After a reconnect, the client checks its holds, because it may have missed messages.
    await bluntRedis(url).client('KILL', 'TYPE', 'PUBSUB')
    await sleep(500)
    await step(0)
    const next = await other.lock(key, { fair: true, timeout: 2 * lease })
    expect([held.held, next.held]).toEqual([false, true])
    await eventually(() => held.signal.aborted)
  })

  // This test fails if `return 'reentered ' .. s.token .. ' ' .. lease` becomes `return 'reentered ' .. s.token .. ' '
  // .. s.ends - now` in lua/mutex/acquire.lua and `Math.min(ends, surelyUntil(sent, claim.lease))` becomes `ends` in
  // src/kinds/queued-kind.ts: the lease of the re-entry seems to last for a minute. It also fails if `' ' .. ends -
  // s.now .. raised` becomes `' ' .. redis.call('ZSCORE', s.deadlines, first) - s.now .. raised` in lua/read-write.lua
  // and `Math.min(ends, surelyUntil(sent, claim.lease))` becomes `ends` in src/kinds/queued-kind.ts: the lease of a
  // re-entry into a read-write lock seems to last for a minute.
  test.for(kinds.filter(({ kind }) => kind !== 'semaphore'))(
    'after a re-entry: the holder has lost the lock before the next caller gets it ($kind)',
    async ({ client }, { key }) => {
      const { url, step } = await steppedServer()
      const lease = 2_500
      const [holder, other] = [client({ lease }, url), client({ waiterTtl: 900 }, url)]
      const outcome = await outcomeOf(
        holder.using(key, { renew: false }, async outer => {
          await step(-60_000)
          const inner = await holder.lock(key, { lease: 1_000 })
          await step(0)
          const next = await other.lock(key, { fair: true, timeout: 2 * lease, owner: 'another' })
          expect([outer.held, inner.held, next.held]).toEqual([false, false, true])
        }),
      )
      expect(outcome.error).toBeInstanceOf(LockLostError)
    },
  )

  // This test fails if `Math.min(deadline, this.#askedUntil)` becomes `deadline` in src/key/hold.ts: for a minute, the
  // holder believes that its lease lasts. Even without this change, two callers may hold at the same time, for at most
  // one lease: setting the clock right ends the lease early on the server, but the holder relies on the lease until its
  // own deadline. This is a limit of I1.
  test('with renewal, then cut off: the holder has lost the lock one lease later', async ({ key }) => {
    const { url, step } = await steppedServer()
    const lease = 1_500
    const proxy = await frameProxy(url)
    const [holder, other] = [client({ lease }, proxy.url), client({ waiterTtl: 900 }, url)]
    const held = await holder.lock(key)
    await step(-60_000)
    await sleep(700) // long enough for an automatic renewal
    await step(0)
    proxy.rule({ direction: 'up' }, 'hold')
    await sleep(lease)
    expect(held.held).toBe(false)
    await eventually(() => held.signal.aborted)
    const next = await other.lock(key, { fair: true, timeout: 2 * lease })
    expect(next.held).toBe(true)
  })
})

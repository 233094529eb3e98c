/**
 * I1: the server's clock stands back for a moment, and is then set right. What a holder believes then is no matter of its kind, but for a
 * re-entry, where the script says how long it lasts.
 */
import { describe, expect, test } from 'vitest'
import { LockLostError } from '../../src/index.ts'
import { kinds } from '../kit/kinds.ts'
import { outcomeOf } from '../kit/outcomes.ts'
import { frameProxy } from '../kit/proxies.ts'
import { bluntRedis, client, freshKey } from '../kit/redis.ts'
import { steppedServer } from '../kit/stepped-server.ts'
import { eventually, sleep } from '../kit/time.ts'

// While the clock stands back by a minute, a lease seems to last for a minute more. A holder that planned its next
// renewal by that would ask long after the clock was right again and its lease had lapsed. Two things prevent it: it believes
// in no more than it has asked for, and it plans by its own pace.
// Break: `Math.min(this.#deadline - (this.length * 2) / 3, now + this.length / 3)` to
// `this.#deadline - (this.length * 2) / 3` in src/local/hold.ts and
// `Math.min(deadline, this.#askedUntil)` to `deadline` in src/local/hold.ts: then both hold, for as long as the step.
test.each([undefined, 'somebody'])(
  'a holder that is renewed asks at its own pace, and keeps the lock: %s',
  async owner => {
    const { url, step } = await steppedServer()
    const [holder, other] = [client({ lease: 1_500 }, url), client({ lease: 1_500, waiterTtl: 900 }, url)]
    const key = freshKey()
    const lease = await holder.lock(key, owner === undefined ? {} : { owner })
    await step(-60_000)
    await sleep(700) // one automatic renewal at least
    await step(0)

    const second = await other.tryLock(key, { fair: true, timeout: 4_000 })
    expect([lease.held, second]).toEqual([true, null])
  },
)

describe('a holder believes in its lease for no longer than it has asked for', () => {
  // While the clock stands back, Redis says of every lease that it lasts for the step, too. Who believes that holds beside
  // the next one, once the clock is right again.
  // Break: `Math.min(deadline, this.#askedUntil)` to `deadline` in src/local/hold.ts: it believes for a minute.
  test('that is not renewed, but was asked about: it has lost the lock when the next one gets it', async () => {
    const { url, step } = await steppedServer()
    const lease = 2_500
    const [holder, other] = [client({ lease }, url), client({ waiterTtl: 900 }, url)]
    const key = freshKey()
    const held = await holder.lock(key, { renew: false })
    await step(-60_000)
    // What may have been missed is asked for.
    await bluntRedis(url).client('KILL', 'TYPE', 'PUBSUB')
    await sleep(500)
    await step(0)
    const next = await other.lock(key, { fair: true, timeout: 2 * lease })
    expect([held.held, next.held]).toEqual([false, true])
    await eventually(() => held.signal.aborted)
  })

  // Break: `return 'reentered ' .. token .. ' ' .. lease` to `return 'reentered ' .. token .. ' ' .. ends - now` in
  // lua/mutex/acquire.lua and `Math.min(Number(ttl), claim.lease)` to `Number(ttl)` in src/kinds/queued-kind.ts: the inner lease seems to
  // last for a minute.
  // Break: `' ' .. ends - now .. raised` to `' ' .. redis.call('ZSCORE', deadlines, first) - now .. raised` in
  // lua/permits/read-write/re-enter.lua and `Math.min(Number(ttl), claim.lease)` to `Number(ttl)` in src/kinds/queued-kind.ts: the same.
  test.each(kinds.filter(({ kind }) => kind !== 'semaphore'))(
    'that enters once more, inside: it has lost the lock when the next one gets it ($kind)',
    async ({ client }) => {
      const { url, step } = await steppedServer()
      const lease = 2_500
      const [holder, other] = [client({ lease }, url), client({ waiterTtl: 900 }, url)]
      const key = freshKey()
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

  // Break: `Math.min(deadline, this.#askedUntil)` to `deadline` in src/local/hold.ts: it believes for a minute. The limit of
  // I1: for as long as the clock stood back, and not longer than a lease, both may hold.
  test('that is renewed, and then cut off: it has lost the lock a lease later', async () => {
    const { url, step } = await steppedServer()
    const lease = 1_500
    const proxy = await frameProxy(url)
    const [holder, other] = [client({ lease }, proxy.url), client({ waiterTtl: 900 }, url)]
    const key = freshKey()
    const held = await holder.lock(key)
    await step(-60_000)
    await sleep(700) // one automatic renewal at least
    await step(0)
    proxy.rule({ direction: 'up' }, 'hold')
    await sleep(lease)
    expect(held.held).toBe(false)
    await eventually(() => held.signal.aborted)
    const next = await other.lock(key, { fair: true, timeout: 2 * lease })
    expect(next.held).toBe(true)
  })
})

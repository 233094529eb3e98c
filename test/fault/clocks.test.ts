/**
 * Tests jumps of the time of day. If a client's time of day jumps, it asks Redis about its holds. Redis measures leases
 * by the server's time of day.
 */
import { describe, expect } from 'vitest'
import { violationsIn } from '../history/recorded.ts'
import { kinds, kindsAndWays } from '../kit/kinds.ts'
import { aborted, within } from '../kit/outcomes.ts'
import { park, parkQuietly, queueOf } from '../kit/parking.ts'
import { Peer } from '../kit/peer.ts'
import { client, freshKey, nothingLeft, plainRedis, test } from '../kit/redis.ts'
import { steppedServer } from '../kit/stepped-server.ts'
import { eventually, sleep } from '../kit/time.ts'

const DAY = 86_400_000
const STEP = 60_000

// This test fails if `return now + this.#suspended` becomes `return Date.now()` in src/clock.ts: a jump forward ends the
// leases.
test.each([DAY, -DAY])(
  'the time of day of a process is off by %i ms, and jumps while it holds and waits: I1 I2 I3 I4, no lock is lost, and no order is',
  async jump => {
    const lease = 1_200
    const [peer, locks, last] = [await Peer.start({ lease, waiterTtl: 900 }), client(), client()]
    await peer.jump(jump)
    const [held, waited] = [freshKey('held'), freshKey('waited')]
    const mine = await peer.lock(held)
    const fixed = await peer.lock(freshKey('fixed'), { lease: 20_000 })
    const lapsing = await peer.lock(freshKey('lapsing'), { lease })
    const [seconds] = await plainRedis().time()
    expect(Math.abs(mine.token / 1_000_000 - Number(seconds))).toBeLessThan(60)
    const theirs = await locks.lock(waited)
    const waiting = peer.lock(waited, { fair: true, timeout: 10_000 })
    await queueOf(locks, waited, 1)
    const { lease: behind } = await park(last, waited, { fair: true })

    for (const each of [jump, -2 * jump, jump]) {
      await peer.jump(each)
      await sleep(lease / 2)
      for (const { id } of [mine, fixed]) expect(await peer.state(id)).toMatchObject({ held: true, aborted: false })
      expect(await locks.tryLock(held)).toBeNull()
      const { waiters } = await locks.inspect(waited)
      expect(waiters).toHaveLength(2)
      for (const waiter of waiters) expect(waiter.waited).toBeLessThan(10_000)
    }
    expect(await peer.state(lapsing.id)).toMatchObject({ held: false, aborted: true })
    await theirs.release()
    const granted = await within(1_000, waiting)
    expect(granted.token).toBeGreaterThan(theirs.fencingToken)
    for (const { id } of [mine, fixed, granted]) expect(await peer.release(id)).toBe(true)
    expect(await (await within(1_000, behind)).release()).toBe(true)
    // After a jump, a hold counts from the answer of Redis, and so may end earlier by the time that the answer took.
    const violations = violationsIn(await peer.history()).filter(text => !text.includes(`${lapsing.id} was lost`))
    expect(violations).toEqual([])
    await nothingLeft(plainRedis(), locks, held)
  },
)

// This test fails if `if (this.behind(this.#lookedAt) > 0) this.ask(this.#table.allHolds)` is removed in
// src/key/renewals.ts: the holder of the fixed lease does not learn of its loss.
test.for(kinds)(
  'the time of day of a process jumps past its leases: I8, it asks Redis about every hold at once ($kind)',
  async ({ peer: start, nameOf }, { key }) => {
    const [peer, redis] = [await start(), plainRedis()]
    const [kept, gone] = [await peer.lock(freshKey()), await peer.lock(key, { lease: STEP })]
    await redis.del(await redis.keys(`${nameOf(key)}*`))
    await peer.jump(DAY)
    await eventually(async () => (await peer.state(gone.id)).aborted)
    await eventually(async () => (await peer.state(kept.id)).held)
    expect(await peer.state(kept.id)).toMatchObject({ aborted: false, lost: 1 })
    expect(await peer.release(kept.id)).toBe(true)
  },
)

describe('the time of day of Redis steps', () => {
  const options = { lease: 3_000, waiterTtl: 1_500 }

  // This test fails if `last ~= NO_CLOCK and last < micros` becomes `last ~= NO_CLOCK` in lua/mutex/acquire.lua: when
  // the time of day goes back, new tokens are smaller than earlier tokens.
  test.for(kinds.flatMap(each => [STEP, -STEP].map(step => ({ ...each, step }))))(
    'by $step ms, and back, and again: I2, tokens increase ($kind)',
    async ({ step, client }, { key }) => {
      const { url, step: stepTo } = await steppedServer()
      // Each step forward is longer than `tokenMemory`; no pause between two calls is.
      const locks = client({ ...options, tokenMemory: STEP / 2 }, url)
      const tokens: number[] = []
      for (const offset of [0, step, 0, -step, step, 0]) {
        await stepTo(offset)
        // Each hold is released before the next step, because holds that last across a step have tests of their own.
        for (let i = 0; i < 3; i++) {
          const lease = await within(2_000, locks.lock(key, { fair: i % 2 === 0 }))
          tokens.push(lease.fencingToken)
          expect(await lease.release()).toBe(true)
        }
      }
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
    },
  )

  // This test fails if `return hold.keeper.onUnknown(hold)` becomes `return` in src/key/renewals.ts: the holder is
  // not notified before its own deadline. Even without this change, the lease ends early on the server, and the holder
  // learns of this only by its next renewal. This is a limit of I1.
  test.for(kindsAndWays)(
    'forward, while a caller holds: I2 I4 I8, the next caller is granted, the holder is notified ($kind, fair: $fair)',
    async ({ fair, client }, { key }) => {
      const { url, redis, step } = await steppedServer()
      const [holder, other] = [client(options, url), client(options, url)]
      const held = await holder.lock(key)
      const notified = aborted(held.signal)
      const { lease: wait } = await parkQuietly(other, key, { fair })
      await step(STEP)
      const [next] = await within(options.lease / 3 + options.waiterTtl / 3 + 600, Promise.all([wait, notified]))
      expect(next.fencingToken).toBeGreaterThan(held.fencingToken)
      expect(await held.release()).toBe(false)
      expect(next.held).toBe(true)
      expect(await next.release()).toBe(true)
      await nothingLeft(redis, other, key)
    },
  )

  // This test fails if `queue, (table.unpack or unpack)(joins)` becomes `queue, 'XX', (table.unpack or unpack)(joins)`
  // in lua/mutex/tend.lua and `redis.call('ZRANK', queue, waiters[i]) + 1` becomes `(redis.call('ZRANK', queue,
  // waiters[i]) or 0) + 1` in lua/mutex/tend.lua: a waiter that the release has passed over never joins the queue
  // again. (With the first change alone, the script would fail, because this waiter has no position in the queue.) It
  // also fails if `line, 'NX'` becomes `line, 'XX'` in lua/permits/tend.lua and `redis.call('ZRANK', line, claim) + 1`
  // becomes `(redis.call('ZRANK', line, claim) or 0) + 1` in lua/permits.lua, for the same reason.
  test.for(kinds)(
    'forward, just before a release: I4, each waiter that seems to have expired is granted within a heartbeat ($kind)',
    async ({ client }, { key }) => {
      const { url, redis, step } = await steppedServer()
      const [holder, ...others] = [client(options, url), client(options, url), client(options, url)]
      const held = await holder!.lock(key)
      const waits = []
      for (const other of others) waits.push((await parkQuietly(other, key, { fair: true })).lease)
      await step(STEP)
      await held.release()
      const served = waits.map(async wait => {
        const lease = await wait
        expect(await lease.release()).toBe(true)
        return lease.fencingToken
      })
      const tokens = await within(options.waiterTtl / 3 + 600, Promise.all(served))
      expect(Math.min(...tokens)).toBeGreaterThan(held.fencingToken)
      await nothingLeft(redis, holder!, key)
    },
  )

  // This test fails if `if s.clock < s.micros then` becomes `if s.micros then` in lua/lock.lua: the waiter that came
  // later has the smaller ticket.
  test.for(kinds)(
    'back, while callers wait: I1 I3 I4, a release hands the lock on at once, in order of arrival ($kind)',
    async ({ client }, { key }) => {
      const { url, redis, step } = await steppedServer()
      const [holder, first, second] = [client(options, url), client(options, url), client(options, url)]
      const held = await holder!.lock(key)
      const { lease: one } = await parkQuietly(first!, key, { fair: true })
      await step(-STEP)
      const { lease: two } = await parkQuietly(second!, key, { fair: true })
      await sleep(options.lease)
      expect(held.held).toBe(true)
      expect(await held.release()).toBe(true)
      const lease = await within(500, one)
      expect(lease.fencingToken).toBeGreaterThan(held.fencingToken)
      expect(await lease.release()).toBe(true)
      const last = await within(500, two)
      expect(last.fencingToken).toBeGreaterThan(lease.fencingToken)
      expect(await last.release()).toBe(true)
      await nothingLeft(redis, holder!, key)
    },
  )

  // This test fails if `if s.queued and not (s.holder and s.ends >= now) then` becomes `if false then` in
  // lua/mutex/tend.lua: no waiter notices the lapsed lease. It also fails if `Math.min(ttl + AFTER_LAPSE,
  // this.#port.pause)` becomes `ttl + AFTER_LAPSE` in src/key/key.ts: the waiter notices the lapse a minute later. It
  // also fails if `local more, word, holds = lapse(s, mark)` becomes `local more, word, holds = false, 'expiry', 0` in
  // lua/permits/tend.lua: no waiter notices the lapsed lease. Even without these changes, one delay cannot be
  // prevented: a dead holder's lease lasts for its own length *and* the length of the step.
  test.each(kinds)(
    'back, while a dead process holds: I4, its lease is longer by the step, but not more; then the lock can be taken ($kind)',
    async ({ client, peer: start }) => {
      const { url, step } = await steppedServer()
      const [key, taken] = [freshKey(), freshKey('taken')]
      const peer = await start(options, url)
      const looking = client(options, url)
      await peer.lock(key)
      await peer.lock(taken)
      const { lease: wait } = await parkQuietly(looking, key, { fair: true })
      await peer.kill()
      await step(-STEP)
      const { ttl = 0 } = await looking.inspect(key)
      expect(ttl).toBeGreaterThan(STEP - 100)
      expect(ttl).toBeLessThanOrEqual(STEP + options.lease)
      expect(await looking.forceRelease(taken)).toBe(true)
      expect(await (await looking.lock(taken)).release()).toBe(true)

      await sleep(options.lease)
      expect(await looking.isLocked(key)).toBe(true)
      // Setting the clock right moves the server's time forward by the whole step, so the lease ends without a long
      // wait.
      await step(0)
      const lease = await within(options.waiterTtl / 3 + 500, wait)
      expect(lease.via).toBe('expiry')
      expect(await lease.release()).toBe(true)
    },
  )
})

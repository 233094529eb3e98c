/** Tests a network that silently stops between a client and Redis, in one direction or in both. */
import { describe, expect } from 'vitest'
import { type Lease, type LockClient, LockConnectionError, LockLostError } from '../../src/index.ts'
import { Memory, RecordedClient, violationsIn } from '../history/recorded.ts'
import { kinds, kindsAndWays } from '../kit/kinds.ts'
import { aborted, heard, outcomeOf, within } from '../kit/outcomes.ts'
import { parkQuietly, ways } from '../kit/parking.ts'
import { clientBehindProxy, type Direction, type FrameProxy } from '../kit/proxies.ts'
import { client, freshKey, nothingLeft, plainRedis, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

const directions: Direction[] = ['up', 'down']

/** Holds all data back until `heal` is called, and then delivers the data, as TCP does. */
function partition(proxy: FrameProxy) {
  const rules = directions.map(direction => proxy.rule({ direction }, 'hold'))
  return { heal: () => rules.forEach(rule => void rule.lift()) }
}

describe('a holder is cut off for longer than its lease', () => {
  const lease = 1_000

  // This test fails if `- Math.min(ttl / 10, 2 + ttl / 1000)` becomes `+ 300` in src/clock.ts: the holder relies on its
  // lease for too long. It also fails if `elseif s.hold ~= id then` becomes `elseif false then` in lua/holder.lua: the
  // late release ends the next holder's hold. It also fails if `redis.call('HDEL', s.lock, (table.unpack or
  // unpack)(over))` is removed in lua/permits.lua: the late release ends the lapsed hold a second time, which frees the
  // next holder's permits.
  test.for(kindsAndWays)(
    'I1 I5 I8: the holder is notified before the next caller holds; its late requests change nothing ($kind, fair: $fair)',
    async ({ fair, client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy({ lease })
      const other = client()
      const history = new Memory()
      const [mine, theirs] = [new RecordedClient('mine', locks, history), new RecordedClient('theirs', other, history)]
      const held = await mine.lock(key)
      let abortedAt = Number.POSITIVE_INFINITY
      held.signal.addEventListener('abort', () => {
        abortedAt = performance.now()
      })
      const { lease: wait } = await parkQuietly(other, key, { fair })
      await sleep(lease / 2)
      const network = partition(proxy)
      const renewing = outcomeOf(held.renew(60_000))

      const next = theirs.granted(await within(lease + 500, wait))
      expect(held.held).toBe(false)
      expect(abortedAt).toBeLessThanOrEqual(performance.now())
      expect(held.signal.reason).toBeInstanceOf(LockLostError)
      expect((await renewing).error).toBeInstanceOf(LockLostError)
      expect(await within(200, held.release())).toBe(false)

      network.heal()
      await sleep(200)
      expect(await other.inspect(key)).toMatchObject({ fencingToken: next.fencingToken, holds: 1 })
      expect(await other.tryLock(key)).toBeNull()
      expect(next.held).toBe(true)
      expect(locks.stats().lost).toBe(1)
      expect(await theirs.release(next)).toBe(true)
      expect(violationsIn(history.events)).toEqual([])
      await nothingLeft(plainRedis(), other, key)
    },
  )
})

// This test fails if `then + Math.min(1_000, hold.length / 10)` becomes `NEVER` in src/key/renewals.ts: the renewal is
// not repeated, and so the lease is lost.
test('a holder is cut off for less than its lease: I8, the holder keeps the lock, and no other caller gets it', async () => {
  const key = freshKey()
  const { locks, proxy } = await clientBehindProxy({ lease: 3_000, outageTimeout: 800 })
  const held = await locks.lock(key)
  const rules = directions.map(direction => proxy.rule({ direction }, 'drop'))
  await sleep(2_000)
  expect(held.held).toBe(true)
  for (const rule of rules) rule.lift()
  await sleep(1_500)
  expect(held.held).toBe(true)
  expect(held.signal.aborted).toBe(false)
  expect(await client().tryLock(key)).toBeNull()
  expect(await held.release()).toBe(true)
})

describe('a waiter is cut off when its turn comes', () => {
  // This test fails if `newer && deadline - now >= lease / 2` becomes `true` in src/key/waiter.ts and `proven &&
  // !this.#port.mayBeOver(waiter, proven.deadline, now)` becomes `proven` in src/key/key.ts: the old message creates a
  // second holder.
  test.for(kinds)(
    'I1 I4: the next waiter is granted when the lease of the first waiter ends; once connected again, the first one continues to wait, and is granted ($kind)',
    async ({ client, clientBehindProxy }, { key }) => {
      const lease = 900
      const { locks, proxy } = await clientBehindProxy()
      const waiterTtl = 1_500
      const [holder, other] = [client(), client({ waiterTtl })]
      const held = await holder.lock(key)
      const history = new Memory()
      const [mine, theirs] = [new RecordedClient('mine', locks, history), new RecordedClient('theirs', other, history)]
      const { lease: first } = await parkQuietly(locks, key, { fair: true, lease })
      const { lease: second } = await parkQuietly(other, key, { fair: true })
      const network = partition(proxy)
      await held.release()
      const next = theirs.granted(await within(lease + waiterTtl / 3 + 500, second))
      expect(next.via).toBe('expiry')
      let early = false
      void first.then(each => {
        early = mine.granted(each) && next.held
      })
      network.heal()
      await sleep(300)
      expect(early).toBe(false)
      expect(await theirs.release(next)).toBe(true)
      const last = await within(5_000, first)
      expect(last.fencingToken).toBeGreaterThan(next.fencingToken)
      expect(await mine.release(last)).toBe(true)
      expect(violationsIn(history.events)).toEqual([])
      await nothingLeft(plainRedis(), other, key)
    },
  )
})

describe.each(directions)('a connection is half-open: data going %s is lost', direction => {
  /**
   * The client gives a connection up if a command stays unanswered for too long. The shorter `outageTimeout` is, the
   * sooner this happens. The client also sends messages to itself, called beats. If a beat does not arrive, the
   * connection for messages has left it unanswered. The shorter `waiterTtl` is, the more often beats are sent.
   */
  const options = { outageTimeout: 1_600, waiterTtl: 1_500 }

  // This test fails if `this.up && this.#unanswered > 0 && now - this.#lastAnswer >= this.#answerLimit` becomes
  // `false` in src/redis/connection.ts: the client never gives the connection up.
  test.each(ways)(
    'the one for commands, of a waiter: I4 I6, the waiter is granted soon after the release (fair: %s)',
    async fair => {
      const key = freshKey()
      const { locks, proxy } = await clientBehindProxy(options)
      const held = await client().lock(key)
      const { lease: wait } = await parkQuietly(locks, key, { fair })
      const half = proxy.halfOpen(direction, 'commands')
      await held.release()
      const lease = await within(3_500, wait)
      expect(await within(2_000, lease.release())).toBe(true)
      expect(half.noticed()).toBe(true)
      await nothingLeft(plainRedis(), locks, key)
    },
  )

  if (direction === 'down')
    // This test fails if `await arrival` is removed in src/redis/one-server.ts: the client keeps a connection on which
    // no messages arrive.
    test.for([
      ...ways.map(fair => ({
        which: 'the one for messages',
        fair,
        terms: options,
        limit: options.waiterTtl / 3 + 500,
      })),
      ...ways.map(fair => ({ which: 'both', fair, terms: options, limit: 2 * options.waiterTtl })),
      // With this waiterTtl, no heartbeat comes within the limit of 15 s. So the client itself must notice the
      // half-open connection.
      { which: 'the one for messages', fair: false, terms: { waiterTtl: 60_000 }, limit: 15_000 },
    ])(
      '$which, of a waiter: I4, the waiter is granted, and receives messages again (fair: $fair, $terms.waiterTtl ms)',
      async ({ which, fair, terms, limit }, { key }) => {
        const { locks, proxy } = await clientBehindProxy(terms)
        const held = await client().lock(key)
        const { lease: wait } = await parkQuietly(locks, key, { fair })
        const half = proxy.halfOpen(direction, which === 'both' ? undefined : 'messages')
        await held.release()
        const lease = await within(limit, wait)
        await eventually(half.noticed)
        expect(await lease.release()).toBe(true)
      },
    )

  if (direction === 'up')
    // This test fails if `this.up && this.#unanswered > 0 && now - this.#lastAnswer >= this.#answerLimit` becomes
    // `false` in src/redis/connection.ts: the subscription is never confirmed. It also fails if
    // `this.#connection.lag === 0` becomes `true` in src/redis/one-server.ts: the beats hide that.
    test('the one for messages, of a waiter that subscribes: I4 I6, it is granted', async ({ key }) => {
      const { locks, proxy } = await clientBehindProxy(options)
      const held = await client().lock(key)
      const half = proxy.halfOpen(direction, 'messages')
      const { lease: wait } = await parkQuietly(locks, key)
      await held.release()
      const lease = await within(3_500, wait)
      await eventually(half.noticed)
      expect(await lease.release()).toBe(true)
    })

  // This test fails if `this.up && this.#unanswered > 0 && now - this.#lastAnswer >= this.#answerLimit` becomes
  // `false` in src/redis/connection.ts: no renewal is answered, and so the lease is lost.
  test('both, of a holder: I6 I8, it keeps its lease, and its release is answered', async ({ key }) => {
    const { locks, proxy } = await clientBehindProxy({ ...options, lease: 3_000 })
    const held = await locks.lock(key)
    const half = proxy.halfOpen(direction)
    await sleep(3_500)
    expect(half.noticed() || direction === 'up').toBe(true)
    expect(held.held).toBe(true)
    expect(await within(2_000, held.release())).toBe(true)
    expect(await client().isLocked(key)).toBe(false)
  })

  // This test fails if `this.up && this.#unanswered > 0 && now - this.#lastAnswer >= this.#answerLimit` becomes
  // `false` in src/redis/connection.ts: the release is not sent again.
  test('in the middle of a release: I6, the release resolves to true', async ({ key }) => {
    const { locks, proxy } = await clientBehindProxy(options)
    const held = await locks.lock(key)
    proxy.halfOpen(direction, 'commands')
    expect(await within(1_500, held.release())).toBe(true)
    expect(await client().isLocked(key)).toBe(false)
  })
})

// This test fails if `call.sent - this.#lastSign >= IDLE` becomes `false` in src/redis/connection.ts: single attempts are
// rejected after a second, and other calls wait for 5 s.
test('idle connections are dropped without a word: I6, the next calls are answered at once', {
  timeout: 40_000,
}, async () => {
  const held = freshKey('held')
  const theirs = await client().lock(held)
  const calls: ((locks: LockClient) => Promise<Lease | null>)[] = [
    locks => locks.tryLock(freshKey()),
    locks => locks.lock(freshKey()),
    locks => locks.lock(freshKey(), { fair: true }),
    locks => locks.lock(held),
  ]
  const scenes = await Promise.all(calls.map(() => clientBehindProxy()))
  const events = scenes.map(({ locks }) => heard(locks, 'disconnected'))
  // A fair call waits for the subscription to the inbox. So from now on, both connections are idle.
  for (const { locks } of scenes) await (await locks.lock(freshKey(), { fair: true })).release()
  await sleep(16_000)
  for (const { proxy } of scenes) for (const direction of directions) proxy.halfOpen(direction)
  const asked = calls.map((call, i) => call(scenes[i]!.locks))
  const leases = await within(3_000, Promise.all(asked.slice(0, 3)))
  expect(leases.map(lease => lease?.held)).toEqual([true, true, true])
  // The connection for messages was dropped, too. The waiter has to receive the message of this release.
  const redis = plainRedis()
  await eventually(async () => (await redis.pubsub('CHANNELS', `*${held}*`)).length > 0)
  await theirs.release()
  expect((await within(1_000, asked[3]!))?.held).toBe(true)
  expect(events).toEqual([[], [], [], []])
})

describe('all data is lost, on old and new connections', () => {
  // This test fails if `if (now - call.begun < this.#outageTimeout) break` becomes `break` in src/redis/connection.ts:
  // calls stay pending. It also fails if `else this.#end(waiter, outOfReach((this.#now ?? key.silence)?.error as
  // Error).of(key.key))` is removed in src/key/limits.ts: the parked waiters stay pending.
  test.each(directions)('going %s: I6 I7 I8, every promise settles within outageTimeout', async direction => {
    const outageTimeout = 1_000
    const [key, free] = [freshKey(), freshKey('free')]
    const { locks, proxy } = await clientBehindProxy({ outageTimeout, waiterTtl: 900, lease: 2_000 })
    const holder = client()
    const theirs = await holder.lock(key)
    const taken = await holder.lock(freshKey('taken'))
    const mine = await locks.lock(freshKey('mine'))
    const notified = aborted(mine.signal)
    const parked = [await parkQuietly(locks, key, { fair: true }), await parkQuietly(locks, key)].map(
      ({ lease }) => lease,
    )
    const rule = proxy.rule({ direction }, 'drop')
    const calls = [
      locks.lock(free),
      locks.lock(free, { fair: true }),
      locks.tryLock(free),
      locks.tryLock(free, { timeout: 60_000 }),
      locks.using(free, () => 'ran'),
      locks.inspect(free),
      locks.isLocked(free),
      // The release of a separate lock is forced, because the request may still arrive. The holder of that lock then
      // loses it.
      locks.forceRelease(taken.key),
      mine.renew(),
    ]
    // The client notices that Redis is gone when a command stays unanswered, which takes up to half of outageTimeout.
    // Only then does outageTimeout begin.
    const outcomes = within(
      1.5 * outageTimeout + 600,
      Promise.all([...calls, ...parked].map(call => outcomeOf<unknown>(call))),
    )
    for (const { error } of await outcomes) expect(error).toBeInstanceOf(LockConnectionError)
    await within(2_000, notified)
    expect(locks.stats()).toMatchObject({ waiting: 0, holding: 0 })
    expect(await theirs.release()).toBe(true)

    rule.lift()
    const lease = await within(4_000, client({}, proxy.url).lock(key))
    expect(await lease.release()).toBe(true)
    // By now, waiters whose leave was lost have expired, and so have the keys of free locks.
    await nothingLeft(plainRedis(), holder, key)
  })
})

/**
 * Tests a Redis that answers late or not at all because it is paused, asleep, busy or loading, and a Redis that forgets
 * all scripts. One kind of lock is enough, because the client's reaction does not depend on the scripts. Late requests
 * are tested for each kind in partitions.test.ts and paused.test.ts.
 */
import type { Redis } from 'ioredis'
import { describe, expect } from 'vitest'
import { readWriteTexts, semaphoreTexts, usualTexts } from '../../scripts/lua/usual-texts.ts'
import { LockLostError } from '../../src/index.ts'
import { Memory, queueEntries, RecordedClient, violationsIn } from '../history/recorded.ts'
import { now } from '../history/recorder.ts'
import { calls, scriptCalls } from '../kit/command-stats.ts'
import { kinds, kindsAndWays } from '../kit/kinds.ts'
import { outcomeOf, settles, within, wordsOf } from '../kit/outcomes.ts'
import { parkQuietly, ways } from '../kit/parking.ts'
import { frameProxy, hasty } from '../kit/proxies.ts'
import { bluntRedis, client, freshKey, nothingLeft, ownServer, plainRedis, serverIn, test } from '../kit/redis.ts'
import { emptyFolder } from '../kit/temp.ts'
import { eventually, sleep } from '../kit/time.ts'

/** These times are in ms. Each stall lasts longer than the lease, but not as long as `outageTimeout`. */
const lease = 1_000
const stall = 1_800
const options = { lease, waiterTtl: 1_500 }

const stalls: Record<string, (redis: Redis) => Promise<unknown>> = {
  'CLIENT PAUSE': redis => redis.client('PAUSE', stall),
  'CLIENT PAUSE … WRITE': redis => redis.client('PAUSE', stall, 'WRITE'),
  'DEBUG SLEEP': redis => redis.call('DEBUG', 'SLEEP', stall / 1_000),
  '-BUSY': async redis => {
    const endless = outcomeOf(redis.eval('while true do end', 0))
    await sleep(stall)
    await bluntRedis(`redis://127.0.0.1:${redis.options.port}`).script('KILL')
    await endless
  },
}

/**
 * The stalls that are tried with only one kind of waiter: `true` for fair waiters, `false` for unfair waiters. A client
 * cannot distinguish a paused server from a sleeping server. So the paused server is tried with fair waiters, and the
 * sleeping server with unfair waiters.
 */
const waysOf: Record<string, boolean[]> = { 'CLIENT PAUSE': [true], 'DEBUG SLEEP': [false] }

describe('-BUSY, which refuses SELECT, while a client of database 3 connects', () => {
  // This test fails if `refusal ?? (demoted` becomes `(demoted` in src/redis/destination.ts: the client uses database 0,
  // where the lock is free.
  test.each(kindsAndWays)(
    'I1 I5: for the first time, or again: holds go on, and a lock that is held there is not granted ($kind, fair: $fair)',
    async ({ client, fair }) => {
      const server = await ownServer('--lua-time-limit', '50')
      const [proxy, redis] = [await frameProxy(server.url), plainRedis(server.url)]
      const history = new Memory()
      const record = (name: string, url: string) =>
        new RecordedClient(name, client({ lease: 6_000 }, `${url}/3`), history)
      const [staying, cut] = [record('staying', server.url), record('cut', proxy.url)]
      const [ours, theirs] = [freshKey('ours'), freshKey('theirs')]
      const [held, kept] = [await staying.lock(ours), await cut.lock(theirs)]
      const ended = stalls['-BUSY']!(redis)
      await sleep(100)
      proxy.cut()
      const served = [cut, record('new', proxy.url)].map(async calls => calls.release(await calls.lock(ours, { fair })))
      await ended
      expect(await settles(Promise.any(served), 1_500)).toBe(false)
      expect(await staying.release(held)).toBe(true)
      expect(await within(5_000, Promise.all(served))).toEqual([true, true])
      expect(await cut.release(kept)).toBe(true)
      expect(violationsIn(history.events)).toEqual([])
      expect(await redis.dbsize()).toBe(0)
    },
  )
})

describe.each(Object.entries(stalls))('%s for longer than the lease', (name, begin) => {
  // This test fails if `- Math.min(ttl / 10, 2 + ttl / 1000)` becomes `+ 1_500` in src/clock.ts: the holder relies on
  // its lease for too long. It also fails if `this.mayBeOver(waiter, answer.deadline, now) && waiter.waits &&
  // !asked.again` becomes `false` in src/key/requests.ts: a call that was made during the stall receives a grant whose
  // lease has already ended.
  test.each(waysOf[name] ?? ways)(
    'I1 I4 I8: the holder is notified in time, the next caller is granted when the stall ends (fair: %s)',
    async fair => {
      const { url } = await ownServer('--enable-debug-command', 'local', '--lua-time-limit', '50')
      const redis = plainRedis(url)
      const [holder, other, third] = [client(options, url), client(options, url), client(options, url)]
      const history = new Memory()
      const [mine, theirs] = [new RecordedClient('mine', holder, history), new RecordedClient('theirs', other, history)]
      const key = freshKey()
      const held = await mine.lock(key)
      const { lease: wait } = await parkQuietly(other, key, { fair })
      const released = await holder.lock(freshKey())
      const stalled = begin(redis)
      await sleep(50)
      const since = performance.now()
      let toldAt = Number.POSITIVE_INFINITY
      held.signal.addEventListener('abort', () => {
        toldAt = performance.now()
      })
      const late = outcomeOf(held.renew())
      const newcomer = outcomeOf(third.lock(freshKey()))
      // The stalled server does not answer the release, so the release settles when the lease ends (I6).
      expect(await within(lease + 100, released.release())).toBe(false)
      expect((await within(lease / 3, late)).error).toBeInstanceOf(LockLostError)
      expect(toldAt - since).toBeLessThan(lease + 100)

      // A grant at the end of a stall has its whole lease left, although the waiter requested it long before.
      const next = theirs.granted(await within(stall + options.waiterTtl / 3 + 1_000, wait))
      await stalled
      expect((await within(1_000, newcomer)).value?.held).toBe(true)
      // By now the requests that were sent during the stall have been executed. They must not have affected the next
      // holder.
      await sleep(100)
      expect(await other.inspect(key)).toMatchObject({ fencingToken: next.fencingToken, holds: 1 })
      expect(await theirs.release(next)).toBe(true)
      expect(violationsIn(history.events)).toEqual([])
      await nothingLeft(redis, other, key)
    },
  )
})

// This test fails if `if (!isReply(error)) call.repeated = true` becomes `call.repeated = true` in
// src/redis/connection.ts: the release resolves to true.
test('-BUSY while a hold is lost: I8, its release resolves to false', async ({ key }) => {
  const { url } = await ownServer('--lua-time-limit', '50')
  const [redis, looking] = [plainRedis(url), bluntRedis(url)]
  await looking.ping()
  const held = await client({}, url).lock(key)
  await redis.del(`lock:{${key}}`)
  const busy = outcomeOf(redis.eval('while true do end', 0))
  await eventually(async () => /BUSY /.test(`${(await outcomeOf(looking.ping())).error}`))
  const released = outcomeOf(held.release())
  await sleep(300)
  await looking.script('KILL')
  await busy
  expect((await within(5_000, released)).value).toBe(false)
})

// This test fails if `if (!this.#known || !refusal.message.startsWith('NOSCRIPT')) return false` becomes `if
// (!this.#known || this.#script.texts > 0 || !refusal.message.startsWith('NOSCRIPT')) return false` in
// src/redis/scripts.ts: the client assumes that Redis never forgets a script, so a call is rejected after Redis has
// forgotten one.
test.each(ways)('SCRIPT FLUSH in a loop: I1 I4 I6, no caller notices (fair: %s)', async fair => {
  const { url } = await ownServer()
  const redis = plainRedis(url)
  const key = freshKey()
  let flushing = true
  const loop = (async () => {
    for (; flushing; await sleep(0)) await redis.script('FLUSH', 'SYNC')
  })()
  const history = new Memory()
  await Promise.all(
    [1, 2, 3].map(async i => {
      const locks = client(options, url)
      const calls = new RecordedClient(`client ${i}`, locks, history)
      for (let i = 0; i < 40; i++) {
        const lease = await within(3_000, calls.lock(key, { fair }))
        if (i % 5 === 0) await lease.renew()
        expect(await calls.release(lease)).toBe(true)
        await hasty(locks, key, fair).then(each => each?.release())
      }
    }),
  )
  flushing = false
  await loop
  expect(violationsIn(history.events)).toEqual([])
  await nothingLeft(redis, client({}, url), key)
})

// All callers queue, so without a flush each grant takes one call of `acquire` and one of `release`. This test fails if
// `first && first.place < request.place ? first : undefined` becomes `first` in src/redis/order.ts: a request that was
// refused is repeated without end.
test('SCRIPT FLUSH under load: I3 I6 I9, it repeats each request under way once, and each script once on each connection', {
  timeout: 240_000,
}, async () => {
  const { url } = await ownServer()
  const redis = plainRedis(url)
  const [scripts, flushes] = [2, 30]
  const shared = [freshKey(), freshKey()]
  const workers = ['a', 'b', 'c'].map(label => ({ label, locks: client({ label, waiterTtl: 60_000 }, url) }))
  for (const { locks } of workers) await locks.using(freshKey(), () => {})
  const before = await calls(redis)
  const history = new Memory()
  let [grants, over] = [0, false]
  const work = workers.flatMap(({ label, locks }) => {
    const recorded = new RecordedClient(label, locks, history)
    const own = Array.from({ length: 8 }, () => freshKey())
    return [...shared, ...own].map(async key => {
      while (!over) {
        const lease = await within(3_000, recorded.lock(key, { fair: true }))
        grants += 1
        expect(await recorded.release(lease)).toBe(true)
      }
    })
  })
  for (let i = 0; i < flushes; i++) {
    const enough = grants + 4 * work.length
    await redis.script('FLUSH', 'SYNC')
    for (const key of shared) {
      const from = now()
      const entries = queueEntries(await redis.zrange(`lock:{${key}}:q`, 0, '-1', 'WITHSCORES'))
      history.record('queue', { key, from, entries })
    }
    await eventually(() => grants >= enough)
  }
  over = true
  await Promise.all(work)
  const extra = scriptCalls(await calls(redis, before)) - 2 * grants
  expect(extra).toBeGreaterThanOrEqual(flushes)
  expect(extra).toBeLessThanOrEqual(flushes * (work.length + scripts * workers.length))
  expect(violationsIn(history.events)).toEqual([])
})

// Redis knows the script of the attempt, and not that of the release, so it refuses the release (NOSCRIPT), and the client
// sends it again, behind the attempt. This test fails if `if (earlier && this.#calls.has(call)) {` becomes `if (false) {`
// in src/redis/connection.ts: the client's attempt is refused because of the hold that it has released. It also fails if
// `request.place = ++this.#places` becomes `request.place = 0` in src/redis/order.ts.
test.each(kinds)('I3: a call takes effect after the calls that the client made before it ($kind)', async kind => {
  const { url } = await ownServer()
  const redis = plainRedis(url)
  const locks = kind.client({}, url)
  const texts = { mutex: usualTexts, semaphore: semaphoreTexts, readWrite: readWriteTexts }[kind.kind]
  for (let i = 0; i < 10; i++) {
    const held = await locks.lock('a')
    await redis.script('FLUSH', 'SYNC')
    await redis.script('LOAD', texts.acquire)
    const released = held.release()
    const next = await locks.tryLock('a')
    expect([await released, next?.held]).toEqual([true, true])
    await next?.release()
  }
})

describe('-LOADING, after a restart with data that takes two seconds to read', () => {
  async function scene() {
    const server = await serverIn(await emptyFolder(), '--rdbcompression', 'no')
    const redis = bluntRedis(server.url)
    const filler = Array.from({ length: 150 }, (_, i) => [`filler ${i}`, 'x'.repeat(1_000)])
    await redis.mset(Object.fromEntries(filler))
    const reload = () =>
      server.restart({
        args: [
          '--rdbcompression',
          'no',
          '--key-load-delay',
          '20000',
          '--loading-process-events-interval-bytes',
          '1024',
        ],
      })
    return { url: server.url, redis, reload }
  }

  // This test fails if `LOADING: 'not now',` is removed in src/redis/refusals.ts: the call is refused instead of waiting.
  test('I1 I2 I4 I6: saved holds and waiters are as before; calls wait until the data is loaded, or reject with LOADING as their cause', async () => {
    const { url, redis, reload } = await scene()
    const [holder, other, hasty] = [client({}, url), client({}, url), client({ outageTimeout: 1_200 }, url)]
    const key = freshKey()
    const held = await holder.lock(key)
    const { lease: wait } = await parkQuietly(other, key, { fair: true })
    await redis.save()
    const restarted = reload()
    const looking = bluntRedis(url)
    await eventually(async () => /loading:1/.test(await looking.info('persistence').catch(() => '')))
    const newcomer = outcomeOf(other.lock(freshKey()))
    expect(wordsOf((await outcomeOf(hasty.lock(freshKey()))).error)).toMatch(/^LOADING /)
    await restarted
    expect((await within(3_000, newcomer)).value?.held).toBe(true)
    expect(held.held).toBe(true)
    expect(await held.release()).toBe(true)
    const next = await within(4_000, wait)
    expect(next.fencingToken).toBeGreaterThan(held.fencingToken)
    expect(await next.release()).toBe(true)
    await nothingLeft(redis, other, key)
  })

  // This test fails if `this.#leaveBehind(hold, why)` is removed in src/key/holds.ts and `if (renewed === 'lost')
  // return hold.keeper.onUnknown(hold)` becomes `if (renewed === 'lost') return` in src/key/renewals.ts: the holder
  // is not notified that the lease has ended. (With only the first change, the test may pass: as soon as Redis has read
  // its data, it reports to the holder that the lease has ended.)
  test('I1 I4 I8: a lease that runs out during loading is lost, and the next waiter is granted after it', async () => {
    const { url, redis, reload } = await scene()
    const [holder, other] = [client(options, url), client(options, url)]
    const history = new Memory()
    const [mine, theirs] = [new RecordedClient('mine', holder, history), new RecordedClient('theirs', other, history)]
    const key = freshKey()
    const { signal } = await mine.lock(key)
    const { lease: wait } = await parkQuietly(other, key, { fair: true })
    await redis.save()
    await reload()
    expect(signal.aborted).toBe(true)
    const next = theirs.granted(await within(options.waiterTtl / 3 + 1_500, wait))
    expect(await theirs.release(next)).toBe(true)
    expect(violationsIn(history.events)).toEqual([])
    await nothingLeft(redis, other, key)
  })
})

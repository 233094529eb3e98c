/**
 * Tests a process that pauses for longer than its lease, and then continues: after SIGSTOP, a blocked event loop, or a
 * suspension of its machine, during which the monotonic clock of Linux stands still.
 */
import { describe, expect, onTestFinished } from 'vitest'
import { Memory, RecordedClient, violationsIn } from '../history/recorded.ts'
import { now } from '../history/recorder.ts'
import { kinds, kindsAndWays } from '../kit/kinds.ts'
import { outcomeOf, within } from '../kit/outcomes.ts'
import { parkQuietly } from '../kit/parking.ts'
import { Peer } from '../kit/peer.ts'
import { frameProxy, warm } from '../kit/proxies.ts'
import { client, nothingLeft, plainRedis, redisUrl, test } from '../kit/redis.ts'
import { SteppedClock } from '../kit/stepped-clock.ts'
import { emptyFolder } from '../kit/temp.ts'
import { eventually, sleep } from '../kit/time.ts'

const lease = 900

/** A suspended machine is played by SIGSTOP. Before the process goes on, that time is taken out of its monotonic clock. */
const pauses = ['SIGSTOP', 'a suspension'] as const

async function pausing(by: (typeof pauses)[number], start: () => Promise<Peer>) {
  let clock: SteppedClock | undefined
  if (by === 'a suspension') {
    clock = await SteppedClock.make(await emptyFolder())
    onTestFinished(() => clock?.close())
  }
  const peer = await (clock ? clock.under(start) : start())
  let [stopped, slept] = [0, 0]
  const stop = () => {
    peer.signal('SIGSTOP')
    stopped = now()
  }
  const goOn = () => {
    if (clock) slept = now() - stopped
    clock?.stoodStill(slept)
    peer.signal('SIGCONT')
  }
  /** Returns what the peer has recorded, with the true times. */
  const history = async () =>
    (await peer.history()).map(each => (each.t < stopped ? each : { ...each, t: each.t + slept }))
  return { peer, stop, goOn, history }
}

describe.each([
  ['renewed', { lease, renew: true }],
  ['fixed', { lease }],
])('the holder of a %s lease is stopped', (_, terms) => {
  // This test fails if `- Math.min(ttl / 10, 2 + ttl / 1000)` becomes `+ 5_000` in src/clock.ts: the holder does not
  // know that its lease has ended. It also fails if `if (now >= this.#rereadAt || Math.abs(Date.now() - now - this.#day)
  // > APART) this.#read(now)` is removed in src/clock.ts: the time of a suspension does not count.
  test.for(pauses.flatMap(by => kindsAndWays.map(each => ({ ...each, by }))))(
    'by $by: I1 I2 I8, another caller gets the lock when the lease ends; late operations change nothing ($kind, fair: $fair)',
    async ({ by, fair, client, peer: start }, { key }) => {
      const { peer, stop, goOn, history: recorded } = await pausing(by, start)
      const other = client({ waiterTtl: 900 })
      const history = new Memory()
      const theirs = new RecordedClient('theirs', other, history)
      const hold = await peer.lock(key, terms)
      const { lease: wait } = await parkQuietly(other, key, { fair })
      stop()
      const next = theirs.granted(await within(lease + 600, wait))
      expect(next.fencingToken).toBeGreaterThan(hold.token)
      // The process is stopped now. It makes the following calls as soon as it continues.
      const [before, released, renewed] = [
        peer.state(hold.id),
        peer.release(hold.id),
        outcomeOf(peer.renew(hold.id, 60_000)),
      ]
      await sleep(300)
      goOn()
      expect(await before).toMatchObject({ held: false })
      expect(await released).toBe(false)
      expect((await renewed).error?.message).toMatch(/LockLostError/)
      await eventually(async () => (await peer.state(hold.id)).aborted)
      expect((await peer.state(hold.id)).lost).toBe(1)
      expect(await other.inspect(key)).toMatchObject({ fencingToken: next.fencingToken, holds: 1 })
      expect(next.held).toBe(true)
      expect(await theirs.release(next)).toBe(true)
      expect(violationsIn([...(await recorded()), ...history.events])).toEqual([])
      await nothingLeft(plainRedis(), other, key)
    },
  )

  // Only the uptime shows this suspension. It is read ten times a second. This test fails if `const REREAD = 100` becomes
  // `const REREAD = 5_000` in src/clock.ts: the holder counts on its lease until then.
  test('by a suspension while the time of day is set back: I1 I8, "held" is false within 0.1 s, the signal follows', async ({
    key,
  }) => {
    const clock = await SteppedClock.make(await emptyFolder())
    onTestFinished(() => clock.close())
    const peer = await clock.under(() => Peer.start())
    const other = client()
    const hold = await peer.lock(key, terms)
    const { lease: wait } = await parkQuietly(other, key)
    const stopped = now()
    peer.signal('SIGSTOP')
    const next = await within(lease + 600, wait)
    const blocked = peer.block(hold.id, 100)
    const released = peer.release(hold.id)
    const slept = now() - stopped
    clock.stoodStill(slept)
    clock.set(-slept)
    peer.signal('SIGCONT')
    expect(await blocked).toEqual({ held: false, remaining: 0 })
    expect(await released).toBe(false)
    await eventually(async () => (await peer.state(hold.id)).aborted)
    expect(next.held).toBe(true)
    expect(await next.release()).toBe(true)
  })

  // This test fails if `Math.max(0, this.#deadline - now)` becomes `this.#deadline` in src/key/hold.ts: `held` depends
  // on timers, which are late.
  test('with its event loop blocked: I1 I8, "held" is false at once, the signal a moment later', async ({ key }) => {
    const peer = await Peer.start()
    const other = client()
    const history = new Memory()
    const theirs = new RecordedClient('theirs', other, history)
    const hold = await peer.lock(key, terms)
    const { lease: wait } = await parkQuietly(other, key)
    const blocked = peer.block(hold.id, 2 * lease)
    const released = peer.release(hold.id)
    const next = theirs.granted(await within(lease + 600, wait))
    expect(await blocked).toEqual({ held: false, remaining: 0 })
    expect(await released).toBe(false)
    expect(await peer.state(hold.id)).toMatchObject({ held: false, aborted: true, lost: 1 })
    expect(await theirs.release(next)).toBe(true)
    expect(violationsIn([...(await peer.history()), ...history.events])).toEqual([])
  })
})

// This test fails if `local ends = endOf(s, id)` becomes `local ends = s.ends` in lua/mutex/renew.lua and `s.token + 0
// > known` becomes `false` in lua/mutex/renew.lua: another caller's lease is prolonged. It also fails if `elseif s.hold
// ~= id then` becomes `elseif false then` in lua/holder.lua: another caller's hold is ended. It also fails if
// `redis.call('HDEL', s.lock, (table.unpack or unpack)(over))` is removed in lua/permits.lua: the lapsed hold ends a
// second time, which frees the next holder's permits.
test.for(kinds)(
  'a stopped holder’s requests arrive when another caller holds: I5, they change nothing ($kind)',
  async ({ client, peer: start }, { key }) => {
    const proxy = await frameProxy(redisUrl())
    const [peer, other] = [await start({}, proxy.url), client()]
    // Load the scripts into the server. Otherwise the server would answer the late requests with NOSCRIPT.
    await warm(other)
    const hold = await peer.lock(key, { lease })
    const sent = (['renew', 'release'] as const).map(name => proxy.rule({ direction: 'up', name }, 'hold'))
    const outcomes = [outcomeOf(peer.renew(hold.id, 60_000)), outcomeOf(peer.release(hold.id))]
    await Promise.all(sent.map(({ happened }) => happened))
    peer.signal('SIGSTOP')
    const next = await within(lease + 600, other.lock(key, { lease: 5_000 }))
    for (const rule of sent) rule.lift()
    await sleep(100)
    const { fencingToken, ttl = 0 } = await other.inspect(key)
    expect(fencingToken).toBe(next.fencingToken)
    expect(ttl).toBeLessThanOrEqual(5_000)
    expect(await other.tryLock(key)).toBeNull()
    peer.signal('SIGCONT')
    for (const { error, value } of await Promise.all(outcomes))
      expect(`${error?.message ?? value}`).toMatch(/LockLostError|false/)
    expect(await next.release()).toBe(true)
  },
)

// This test fails if `redis.call('ZADD', queue, (table.unpack or unpack)(joins))` is removed in lua/mutex/tend.lua and
// `redis.call('ZRANK', queue, waiters[i]) + 1` becomes `1` in lua/mutex/tend.lua: the waiter never joins the queue
// again. It also fails if `newer && deadline - now >= lease / 2` becomes `true` in src/key/waiter.ts and `proven &&
// !this.#port.mayBeOver(waiter, proven.deadline, now)` becomes `proven` in src/key/key.ts: the waiter believes the
// message about its lapsed grant. It also fails if `both > APART ? both : 0` becomes `0` in src/clock.ts and `if (ms >
// APART) doubts.push({ at: now + this.#suspended, ms })` is removed in src/clock.ts, for the same reason.
test.for(pauses.flatMap(by => kinds.map(each => ({ ...each, by }))))(
  'a fair waiter is stopped by $by when its turn comes: I1 I4, this costs the others one lease; when the waiter runs again, it continues to wait ($kind)',
  async ({ by, client, peer: start }, { key }) => {
    const { peer, stop, goOn, history: recorded } = await pausing(by, () => start({ waiterTtl: 900 }))
    const [holder, next] = [client(), client({ waiterTtl: 900 })]
    const held = await holder.lock(key)
    const waiting = peer.lock(key, { fair: true, lease })
    await eventually(async () => (await holder.inspect(key)).waiters.length === 1)
    const { lease: wait } = await parkQuietly(next, key, { fair: true })
    stop()
    await sleep(20)
    const history = new Memory()
    const theirs = new RecordedClient('theirs', next, history)
    await held.release()
    const second = theirs.granted(await within(lease + 900 / 3 + 500, wait))
    goOn()
    await eventually(async () => (await holder.inspect(key)).waiters.length === 1)
    expect(await holder.inspect(key)).toMatchObject({ fencingToken: second.fencingToken, waiters: [{}] })
    expect(await theirs.release(second)).toBe(true)
    const hold = await within(1_000, waiting)
    expect(hold.token).toBeGreaterThan(second.fencingToken)
    expect(await peer.release(hold.id)).toBe(true)
    expect(violationsIn([...(await recorded()), ...history.events])).toEqual([])
  },
)

/** Tests processes that are killed without any notice (by SIGKILL) while they hold locks and wait for locks. */
import { expect } from 'vitest'
import { LockQueueFullError } from '../../src/index.ts'
import { Memory, RecordedClient, violationsIn } from '../history/recorded.ts'
import { kinds, kindsAndWays } from '../kit/kinds.ts'
import { PROMPT, rejection, within } from '../kit/outcomes.ts'
import { park, parkQuietly } from '../kit/parking.ts'
import { keysWith, nothingLeft, plainRedis, test } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'

/**
 * Options of the processes that die. `waiterTtl` and `lease` are so long that a test fails if it has to wait for the
 * end of either.
 */
const long = { waiterTtl: 60_000, lease: 60_000, tokenMemory: 200 }

// This test fails if `Math.min(ttl + AFTER_LAPSE, this.#port.pause)` becomes `this.#port.pause` in src/key/key.ts: the
// waiter notices too late that the lease has lapsed. It also fails if `local unended, word, holds = lapse(s, mark)`
// becomes `local unended, word, holds = false, 'expiry', 0` in lua/permits/acquire.lua and `local more, word, holds =
// lapse(s, mark)` becomes `local more, word, holds = false, 'expiry', 0` in lua/permits/tend.lua: the dead process's
// lock is never free.
test.for(kindsAndWays)(
  'of the holder: I1 I4 I7, the next caller is granted when its lease ends, nothing is left ($kind, fair: $fair)',
  async ({ fair, client, peer: start }, { key }) => {
    const lease = 1_000
    const peer = await start({ lease, tokenMemory: 200 })
    // The next heartbeat would come after 20 s. The waiter is granted in time, because it knows when the lease ends and
    // asks then.
    const [other, redis] = [client({ waiterTtl: long.waiterTtl, tokenMemory: 200 }), plainRedis()]
    const hold = await peer.lock(key)
    const { lease: wait } = await parkQuietly(other, key, { fair })
    const history = new Memory()
    const theirs = new RecordedClient('other', other, history)
    const own = await peer.history()
    history.record('died', { worker: 'peer' })
    await peer.kill()
    const { ttl = 0 } = await other.inspect(key)
    const next = theirs.granted(await within(ttl + PROMPT, wait))
    expect(next.via).toBe('expiry')
    expect(next.fencingToken).toBeGreaterThan(hold.token)
    expect(await theirs.release(next)).toBe(true)
    expect(violationsIn([...own, ...history.events])).toEqual([])
    await nothingLeft(redis, other, key)
  },
)

// This test fails if `Math.max(lease, minHold)` becomes `lease` in src/kinds/claim.ts: the next caller is granted when
// the lease of the dead process ends.
test.for(kinds)(
  'of a holder with `minHold`: I1, the lock stays taken until then, and longer than the lease ($kind)',
  async ({ client, peer: start }, { key }) => {
    const peer = await start({ ...long, lease: 200 })
    const begun = performance.now()
    await peer.lock(key, { minHold: 2_000 })
    await peer.kill()
    const next = await within(2_000 + PROMPT, client().lock(key))
    expect(performance.now() - begun).toBeGreaterThan(2_000)
    await next.release()
  },
)

// This test fails if `if deadline and deadline - WAITER >= s.now then return lease, ttl end` becomes `return lease,
// ttl` in lua/lock.lua: the dead waiter counts for `maxWaiters`.
test.for(kinds)(
  'of a waiter: it counts for `maxWaiters` no longer than it may come back ($kind)',
  async ({ client, peer: start }, { key }) => {
    const locks = client()
    const held = await locks.lock(key)
    const peer = await start({ waiterTtl: 600 })
    peer.lock(key, { fair: true }).catch(() => {})
    await eventually(async () => (await locks.inspect(key)).waiters.length === 1)
    await rejection(locks.lock(key, { maxWaiters: 1 }), LockQueueFullError)
    await peer.kill()
    await eventually(async () => (await locks.inspect(key)).waiters.length === 0)
    const { lease } = await park(locks, key, { maxWaiters: 1, fair: true })
    await held.release()
    await (await lease).release()
  },
)

// This test fails if `if latest < s.now + s.holder:match(WAITING, HELD_TERMS_AT) then` becomes `if false then` in
// lua/holder.lua and `if brief then` becomes `if false then` in lua/read-write.lua: the waiter looks only at its next
// heartbeat, after 20 s.
test.for(kindsAndWays.filter(({ kind }) => kind !== 'semaphore'))(
  'of one holder of an owner, while the other one releases: I4, the next caller is granted when the last lease ends ($kind, fair: $fair)',
  async ({ fair, client, peer: start }, { key }) => {
    const [first, other] = [client(long), client(long)]
    const peer = await start(long)
    const held = await first.lock(key, { owner: 'import' })
    const { lease: wait } = await parkQuietly(other, key, fair ? { fair } : { fairAfter: Number.POSITIVE_INFINITY })
    await peer.lock(key, { owner: 'import', lease: 1_500 })
    await peer.kill()
    await held.release()
    const { ttl = 0 } = await other.inspect(key)
    const next = await within(ttl + PROMPT, wait)
    expect(next.fencingToken).toBeGreaterThan(held.fencingToken)
    expect(await next.release()).toBe(true)
  },
)

// This test fails if `if reached ~= 0 then` becomes `if true then` in lua/holder.lua: the lock goes to a dead waiter.
// It also fails if `send(s, client, text) == 0` becomes `not send(s, client, text)` in lua/permits.lua, for the same
// reason.
test.for(kinds.flatMap(each => [1, 50].map(dead => ({ ...each, dead }))))(
  'of $dead waiters at the head of the queue: I3 I4 I7, the release itself passes over them; the others keep their order ($kind)',
  async ({ dead, client, peer: start }, { key }) => {
    const peer = await start(long)
    const [holder, first, second] = [client(long), client(long), client(long)]
    const held = await holder.lock(key)
    await peer.queue(key, dead, { fair: true })
    const { lease: one } = await parkQuietly(first, key, { fair: true })
    const { lease: two } = await parkQuietly(second, key, { fair: true })
    await peer.kill()
    expect(await held.release()).toBe(true)
    const lease = await within(PROMPT, one)
    expect(lease.via).toBe('handoff')
    expect((await holder.inspect(key)).waiters).toHaveLength(1)
    expect(await lease.release()).toBe(true)
    expect(await (await within(PROMPT, two)).release()).toBe(true)
    await nothingLeft(plainRedis(), holder, key)
  },
)

// This test fails if `if reached ~= 0 then` becomes `if true then` in lua/holder.lua: the lock goes to a dead waiter.
// It also fails if `send(s, client, text) == 0` becomes `not send(s, client, text)` in lua/permits.lua, for the same
// reason.
test.for(kinds)(
  'of all queued waiters: I4, an unfair caller gets the lock at once ($kind)',
  async ({ client, peer: start }, { key }) => {
    const held = await client(long).lock(key)
    const peer = await start(long)
    await peer.queue(key, 50, { fair: true })
    await peer.kill()
    await held.release()
    const lease = await within(PROMPT, client(long).lock(key))
    expect(await lease.release()).toBe(true)
  },
)

// This test fails if `if reached ~= 0 then` becomes `if true then` in lua/holder.lua: each of the twenty dead waiters
// gets the lock and keeps it for a lease. It also fails if `send(s, client, text) == 0` becomes `not send(s, client,
// text)` in lua/permits.lua, for the same reason.
test.for(kinds)(
  'of a process that holds, and has twenty fair waiters among those of other processes: I1 I3 I4 I7 ($kind)',
  async ({ client, peer: start }, { key }) => {
    const lease = 1_200
    const peer = await start({ ...long, lease })
    const [others, redis] = [[client({ waiterTtl: 1_500 }), client({ waiterTtl: 1_500 })], plainRedis()]
    await peer.lock(key, { renew: true, lease })
    const order: number[] = []
    const tokens: number[] = []
    const served: Promise<void>[] = []
    for (let place = 0; place < 4; place++) {
      await peer.queue(key, 5, { fair: true })
      const { lease: wait } = await parkQuietly(others[place % 2]!, key, { fair: true })
      served.push(
        wait.then(async granted => {
          order.push(place)
          tokens.push(granted.fencingToken)
          expect(await granted.release()).toBe(true)
        }),
      )
    }
    expect((await others[0]!.inspect(key)).waiters).toHaveLength(24)
    await peer.kill()
    const { ttl = 0 } = await others[0]!.inspect(key)
    await within(ttl + 1_500 / 3 + PROMPT, Promise.all(served))
    expect(order).toEqual([0, 1, 2, 3])
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b))
    await nothingLeft(redis, others[0]!, key)
  },
)

// This test fails if `redis.call('PEXPIREAT', line, s.queued)` becomes `redis.call('EXISTS', line)` in lua/lock.lua:
// the queue of dead waiters remains for ever. It also fails if `redis.call('PEXPIREAT', deadlines, keep)` becomes
// `redis.call('EXISTS', deadlines)` in lua/permits/acquire.lua: the deadlines remain, too.
test.for(kinds)(
  'of all processes: I7, nothing at all is left in Redis after their leases and waiters have expired ($kind)',
  async ({ peer: start }, { key }) => {
    const terms = { lease: 600, waiterTtl: 500, tokenMemory: 200 }
    const peers = [await start(terms), await start(terms)]
    await peers[0]!.lock(key)
    await peers[0]!.queue(key, 5, { fair: true })
    await peers[1]!.queue(key, 5, { fair: true })
    const redis = plainRedis()
    expect((await keysWith(redis, key)).length).toBeGreaterThan(1)
    await Promise.all(peers.map(peer => peer.kill()))
    // The key of a lock lives for 5 s after its last lease, so that a waiter still finds who held it (lua/lock.lua).
    await eventually(async () => (await keysWith(redis, key)).length === 0, 12_000)
  },
)

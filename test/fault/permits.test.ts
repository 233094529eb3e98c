/**
 * Tests faults with semaphores of several permits. One release admits several waiters, one message announces several
 * grants, and one Redis key has the deadlines of all holds.
 */
import { describe, expect } from 'vitest'
import type { Lease, Lock, LockClient } from '../../src/index.ts'
import type { KeyedLock } from '../../src/lock.ts'
import type { SemaphoreOptions } from '../../src/options.ts'
import { outcomeOf, within } from '../kit/outcomes.ts'
import { Peer } from '../kit/peer.ts'
import { clientBehindProxy } from '../kit/proxies.ts'
import { client, freshKey, plainRedis, redisUrl, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

/** With these options, no heartbeat comes and no lease ends during a test. */
const patient = { waiterTtl: 60_000, lease: 60_000 }

/** Calls `lock` several times, and waits until each call is queued before it makes the next call. */
async function queued(
  semaphore: Lock<SemaphoreOptions>,
  calls: readonly SemaphoreOptions[],
): Promise<Promise<Lease>[]> {
  const waits: Promise<Lease>[] = []
  const before = (await semaphore.inspect()).waiters.length
  for (const options of calls) {
    waits.push(semaphore.lock({ fair: true, ...options }))
    await eventually(async () => (await semaphore.inspect()).waiters.length === before + waits.length)
  }
  return waits
}

/** Waits until one call can take all permits, and checks that no other holder and no waiter is left. */
async function allFree(locks: LockClient, key: string, permits: number): Promise<void> {
  const semaphore = locks.semaphore(key, permits)
  const all = await eventually(() => semaphore.tryLock({ permits }))
  expect(await semaphore.inspect()).toMatchObject({ taken: permits, holds: 1, waiters: [] })
  expect(await all?.release()).toBe(true)
}

/** Takes all permits. Then queues waiters one after another; their client reaches Redis through a proxy. */
async function scene(permits: number, waiters: readonly SemaphoreOptions[]) {
  const key = freshKey()
  const { locks, proxy } = await clientBehindProxy(patient)
  const holder = client(patient)
  const held = await holder.semaphore(key, permits).lock({ permits })
  const waits = await queued(locks.semaphore(key, permits), waiters)
  return { key, locks, proxy, holder, held, waits }
}

const tokensOf = (leases: readonly Lease[]) => leases.map(({ fencingToken }) => fencingToken)
const rising = (numbers: readonly number[]) => [...new Set(numbers)].sort((a, b) => a - b)

describe('one release admits several waiters of another client by one message', () => {
  // This test fails if `return this.keeper.onGrant(this, grant)` becomes `return false` in src/key/hold.ts: when the
  // message comes again, the client gives back live holds.
  test('that comes twice: I1 I2 I5, each waiter is granted once, in the order of the queue', async () => {
    const { key, locks, proxy, holder, held, waits } = await scene(3, [{}, {}, {}])
    const message = proxy.rule({ direction: 'down', name: 'handoff' }, 'twice')
    await held.release()
    const leases = await within(1_000, Promise.all(waits))
    expect(message.count).toBe(1)
    expect(tokensOf(leases)).toEqual(rising(tokensOf(leases)))
    await sleep(50)
    expect(await holder.semaphore(key, 3).inspect()).toMatchObject({ taken: 3, holds: 3 })
    for (const lease of leases) expect(await lease.release()).toBe(true)
    expect(locks.stats()).toMatchObject({ acquired: 4, lost: 0 })
    await allFree(holder, key, 3)
  })

  // This test fails if `if records[at] then` becomes `if records[at] and at == 1 then` in lua/permits/tend.lua: the
  // heartbeat finds only the first grant.
  test('that is lost: I4, one heartbeat finds all of the grants', async ({ key }) => {
    const waiterTtl = 1_800
    const { locks, proxy } = await clientBehindProxy({ waiterTtl })
    const held = await client().semaphore(key, 3).lock({ permits: 3 })
    const waits = await queued(locks.semaphore(key, 3), [{}, {}, {}])
    const lost = proxy.rule({ direction: 'down', name: 'handoff' }, 'drop')
    await held.release()
    const leases = await within(waiterTtl / 3 + 300, Promise.all(waits))
    expect(lost.count).toBe(1)
    for (const lease of leases) expect(await lease.release()).toBe(true)
    await allFree(client(), key, 3)
  })

  // This test fails if `.giveBack({ key: locks.keys.keyOf(lock) as string, id })` becomes `` in src/session.ts and `if
  // (leaves) this.#port.leave(waiter)` is removed in src/key/key.ts: the permit for the waiter that has left is never
  // used.
  test('that comes when one waiter has given up: I4 I7, its permit is passed on, and the other waiters keep theirs', async () => {
    const controller = new AbortController()
    const { key, locks, proxy, holder, held, waits } = await scene(3, [{}, { signal: controller.signal }, {}])
    const [first, gone, third] = waits as [Promise<Lease>, Promise<Lease>, Promise<Lease>]
    const [next] = await queued(holder.semaphore(key, 3), [{}])
    const message = proxy.rule({ direction: 'down', name: 'handoff' }, 'hold')
    await held.release()
    await message.happened
    controller.abort(new Error('no longer'))
    expect((await outcomeOf(gone)).error?.message).toBe('no longer')
    const granted = await within(1_000, next!)
    message.lift()
    const leases = await within(1_000, Promise.all([first, third]))
    await sleep(50)
    expect(await holder.semaphore(key, 3).inspect()).toMatchObject({ taken: 3, holds: 3 })
    for (const lease of [...leases, granted]) expect(await lease.release()).toBe(true)
    expect(locks.stats()).toMatchObject({ waiting: 0, holding: 0, lost: 0 })
    await allFree(holder, key, 3)
  })

  // This test fails if `s.taken = s.taken - claim:match(WANTS, TERMS_AT)` is removed in lua/permits.lua: the permits
  // for the waiters that are passed over stay taken, and no other waiter gets them.
  test('that does not arrive: I3 I4, its waiters are passed over, join again with their tickets, and are served first', async () => {
    const { key, locks, proxy, holder, held, waits } = await scene(3, [{}, { permits: 2 }])
    const [large, last] = await queued(holder.semaphore(key, 3), [{ permits: 3 }, { permits: 3 }])
    const reconnect = proxy.rule({ direction: 'up', name: 'subscribe' }, 'hold')
    proxy.cut('messages')
    await eventually(async () => {
      const counts = (await plainRedis().pubsub('NUMSUB', `lock:inbox:${held.id.slice(0, 12)}`)) as unknown[]
      return counts.length === 2
    })
    await eventually(async () => {
      const inboxes = (await plainRedis().pubsub('CHANNELS', 'lock:inbox:*')) as string[]
      const ids = (await holder.semaphore(key, 3).inspect()).waiters.map(({ id }) => id.slice(0, 12))
      return !inboxes.includes(`lock:inbox:${ids[0]}`)
    })
    await held.release()
    const lease = await within(1_000, large!)
    reconnect.lift()
    await eventually(async () => (await holder.semaphore(key, 3).inspect()).waiters.length === 3)
    expect(await lease.release()).toBe(true)
    const leases = await within(1_000, Promise.all(waits))
    for (const each of leases) expect(await each.release()).toBe(true)
    expect(await (await within(1_000, last!)).release()).toBe(true)
    expect(locks.stats().lost).toBe(0)
    await allFree(holder, key, 3)
  })
})

// This test fails if `status === 'released' || repeated` becomes `status === 'released'` in src/kinds/queued-kind.ts:
// the release that ended the hold resolves to false.
test('the reply of a release that admits several waiters of its own client is lost: I4 I5, all are granted', async () => {
  const key = freshKey()
  const { locks, proxy } = await clientBehindProxy(patient)
  const semaphore = locks.semaphore(key, 3)
  const held = await semaphore.lock({ permits: 3 })
  const waits = await queued(semaphore, [{}, {}, {}])
  const lost = proxy.rule({ direction: 'down', name: 'release', times: 1 }, 'cut')
  expect(await within(3_000, held.release())).toBe(true)
  const leases = await within(3_000, Promise.all(waits))
  expect(lost.count).toBe(1)
  expect(tokensOf(leases)).toEqual(rising(tokensOf(leases)))
  for (const lease of leases) expect(await lease.release()).toBe(true)
  await allFree(client(), key, 3)
})

// This test fails if `if forced == request then return 'released' end` is removed in
// lua/permits/force-release.lua: the second execution also takes the permits from the next holders.
test('the reply of a forced release is lost: I5 I8, the repeated request takes no permits from the next holders', async () => {
  const key = freshKey()
  const { locks, proxy } = await clientBehindProxy(patient)
  const [holder, other] = [client(patient), client(patient)]
  const held = [await holder.semaphore(key, 3).lock(), await holder.semaphore(key, 3).lock({ permits: 2 })]
  const waits = await queued(other.semaphore(key, 3), [{}, { permits: 2 }])
  const lost = proxy.rule({ direction: 'down', name: 'forceRelease', times: 2 }, 'cut')
  const { client: permits } = locks.semaphore(key, 3) as KeyedLock
  expect(await within(3_000, permits.inspection(key).forceRelease(key))).toBe(true)
  expect(lost.count).toBe(2)
  const leases = await within(1_000, Promise.all(waits))
  await eventually(() => held.every(({ signal }) => signal.aborted))
  await sleep(50)
  expect(await other.semaphore(key, 3).inspect()).toMatchObject({ taken: 3, holds: 2 })
  for (const lease of leases) expect(await lease.release()).toBe(true)
  await allFree(other, key, 3)
})

// This test fails if `s.taken = s.taken - records[i]:match(WANTS, RECORD_TERMS_AT)` becomes `s.taken = s.taken - 1` in
// lua/permits.lua: the dead process's other permits never become free.
test('SIGKILL of a process that holds several permits and waits for more: I1 I3 I4, its permits are free when its lease ends', async () => {
  const key = freshKey()
  const lease = 1_200
  const peer = await Peer.start({ ...patient, lease }, redisUrl(), 'semaphore')
  const other = client({ ...patient, waiterTtl: 1_500 })
  const semaphore = other.semaphore(key, 5)
  const held = await semaphore.lock({ permits: 2 })
  await peer.permits(key, 5, { permits: 2, lease })
  await peer.permits(key, 5, { permits: 1, lease })
  const waits = await queued(semaphore, [{ permits: 4 }, { permits: 1 }])
  await peer.kill()
  expect(await held.release()).toBe(true)
  await sleep(100)
  expect((await semaphore.inspect()).waiters).toHaveLength(2)
  const leases = await within(lease + 1_500 / 3 + 500, Promise.all(waits))
  expect(tokensOf(leases)).toEqual(rising(tokensOf(leases)))
  for (const each of leases) expect(await each.release()).toBe(true)
  await allFree(other, key, 5)
})

// This test fails if `if taken == 0 or first and first + 0 >= now then` becomes `if true then` in
// lua/permits/acquire.lua: the dead holder's permits stay taken as long as any other caller holds.
test('the deadlines are lost, and the holder is dead: I4, its permits come back while others come and go', async () => {
  const key = freshKey()
  const other = client(patient)
  const semaphore = other.semaphore(key, 3)
  const peer = await Peer.start(patient)
  await peer.permits(key, 3, { permits: 2 })
  await peer.kill()
  await plainRedis().del(`lock:%semaphore/{${key}}:d`)
  const busy = await semaphore.lock()
  const rest = await within(1_000, semaphore.lock({ permits: 2 }))
  for (const lease of [busy, rest]) expect(await lease.release()).toBe(true)
  await allFree(other, key, 3)
})

// This test fails if `redis.call('ZREMRANGEBYSCORE', s.deadlines, '-inf', '(' .. WAITER)` becomes `local kept = 1` in
// lua/permits.lua: the first deadline belongs to the lost hold, so waiters are told that a lease ends at once, and ask
// every few ms.
test('the lock is lost, but its deadlines are not: I9, waiters ask no more often than usual', async ({ key }) => {
  const { locks, proxy } = await clientBehindProxy(patient)
  const other = client(patient)
  await other.semaphore(key, 1).lock({ lease: 20_000 })
  await plainRedis().del(`lock:%semaphore/{${key}}`)
  const held = await other.semaphore(key, 1).lock()
  const asked = proxy.rule({ direction: 'up', name: 'tend' }, { delay: 0 })
  const [wait] = await queued(locks.semaphore(key, 1), [{}])
  await sleep(300)
  expect(asked.count).toBeLessThan(5)
  expect(await held.release()).toBe(true)
  expect(await (await within(1_000, wait!)).release()).toBe(true)
})

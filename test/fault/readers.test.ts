/**
 * Tests reader processes that die. Several readers hold at the same time, and a writer waits for all of them. The tests
 * that run with every kind of lock use only the writers of a read-write lock, so readers are tested here.
 */
import { expect, test } from 'vitest'
import type { Lease, Lock, LockOptions } from '../../src/index.ts'
import { CLIENT_ID_LENGTH } from '../../src/kind.ts'
import { heard, PROMPT, within } from '../kit/outcomes.ts'
import { parkAt, ways } from '../kit/parking.ts'
import { Peer } from '../kit/peer.ts'
import { clientBehindProxy } from '../kit/proxies.ts'
import { client, clients, freshKey, plainRedis } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

/** With these options, no heartbeat comes and no lease ends during a test. */
const patient = { waiterTtl: 60_000, lease: 60_000 }

/** Makes a call, and waits until it is queued. `behind` is the number of calls that are already in the queue. */
async function queued(lock: Lock, behind: number, options: LockOptions = {}): Promise<{ lease: Promise<Lease> }> {
  const lease = lock.lock({ fair: true, ...options })
  await eventually(async () => (await lock.inspect()).waiters.length === behind + 1)
  return { lease }
}

// This test fails if `if writer and s.taken == 0 and left > 0 then` becomes `if writer and left > 0 then` in
// lua/read-write.lua: the writer is admitted while living readers hold. It also fails if `over = redis.call('ZRANGE',
// s.deadlines, 0, math.min(many, MOST_LAPSED) - 1)` becomes `over = redis.call('ZRANGE', s.deadlines, 0, -1)` in
// lua/permits.lua: when the first lease ends, all leases count as ended.
test('SIGKILL of some readers, while others read: I1 I4, a writer gets the lock when the last lease is over, or released', async () => {
  const key = freshKey()
  const dead = [await Peer.start(patient), await Peer.start(patient)]
  const [living, writing] = [client(patient).readWrite(key), client(patient)]
  await dead[0]!.read(key, { lease: 800 })
  await dead[1]!.read(key, { lease: 1_600 })
  const held = await living.read.lock()
  const { lease: wait } = await queued(writing.readWrite(key).write, 0)
  let granted = false
  void wait.then(() => {
    granted = true
  })
  for (const peer of dead) await peer.kill()
  await eventually(async () => (await living.inspect()).holders.length === 1)
  await sleep(100)
  expect([granted, held.held]).toEqual([false, true])
  expect(await living.read.tryLock()).toBeNull()
  expect(await held.release()).toBe(true)
  const next = await within(PROMPT, wait)
  expect(next.fencingToken).toBeGreaterThan(held.fencingToken)
  expect(await next.release()).toBe(true)
  expect(await living.inspect()).toMatchObject({ locked: false, waiters: [] })
})

// This test fails if `if mayReEnter(s, claim) then place = -place end` is removed in lua/permits/tend.lua: the call
// waits until its owner and the next writer have ended. It also fails if `if (waiter.call.mayReenter) this.ask(waiter,
// 'to-re-enter', now)` becomes `if (false) this.ask(waiter, 'to-re-enter', now)` in src/key/key.ts, for the same
// reason.
test.each(ways)(
  'the message that an owner has entered is lost: I4, its other call re-enters by the next heartbeat (fair: %s)',
  async fair => {
    const key = freshKey()
    const { locks, proxy } = await clientBehindProxy({ waiterTtl: 1_500 })
    const [lock, theirs] = [client(patient).readWrite(key), locks.readWrite(key)]
    const writer = await lock.write.lock()
    const first = await queued(lock.read, 0, { lease: 30_000, renew: true })
    const named = await queued(lock.read, 1, { owner: 'import' })
    const way = fair ? { fair } : { fairAfter: Number.POSITIVE_INFINITY }
    const waits = heard(locks, 'waiting')
    const ahead = new AbortController()
    theirs.read.lock({ ...way, signal: ahead.signal }).catch(() => {})
    const waiting = theirs.read.lock({ ...way, owner: 'import' })
    await eventually(() => waits.length === 2)
    const next = await queued(lock.write, fair ? 4 : 2)
    // The client has no connection at the moment of the grant.
    proxy.refuse()
    proxy.cut()
    const inbox = `lock:inbox:${(await lock.inspect()).waiters[2]!.id.slice(0, CLIENT_ID_LENGTH)}`
    if (fair) await eventually(async () => (await plainRedis().pubsub('NUMSUB', inbox))[1] === 0)
    await writer.release()
    const reading = [await first.lease, await named.lease]
    proxy.accept()
    const lease = await within(PROMPT, waiting)
    expect(lease).toMatchObject({ via: 'reentry', fencingToken: reading[1]!.fencingToken })
    ahead.abort()
    for (const each of [lease, ...reading]) await each.release()
    await (await within(PROMPT, next.lease)).release()
  },
)

// This test fails if `if lease * 3 < expiry + 0 then redis.pcall('PUBLISH', lock .. ':unlock', 'ends ' .. lease) end`
// is removed in lua/permits/acquire.lua: the writer looks only at its next heartbeat, after 20 s.
test('SIGKILL of a reader that began after a writer was refused: I4, the writer writes when the last lease is over', async () => {
  const key = freshKey()
  const [one, two] = [client(patient).readWrite(key), client(patient).readWrite(key)]
  const held = await one.read.lock()
  const { lease: writing } = await parkAt(two.write, 0, { fair: false, fairAfter: Number.POSITIVE_INFINITY })
  const peer = await Peer.start(patient)
  await peer.read(key, { lease: 1_500 })
  await peer.kill()
  await held.release()
  const { ttl = 0 } = await one.inspect()
  expect(await (await within(ttl + PROMPT, writing)).release()).toBe(true)
})

// This test fails if `send(s, client, text) == 0` becomes `not send(s, client, text)` in lua/permits.lua: the dead
// readers are admitted.
test('SIGKILL of many waiting readers: I3 I4, when a writer ends, the living ones read, and then the next writer writes', async () => {
  const key = freshKey()
  const [one, two, three] = clients(3).map(locks => locks.readWrite(key))
  const peer = await Peer.start(patient)
  const held = await one!.write.lock()
  await peer.queueToRead(key, 30)
  const { lease: reading } = await queued(two!.read, 30)
  const { lease: writing } = await queued(three!.write, 31)
  await peer.kill()
  expect(await held.release()).toBe(true)
  const reader = await within(PROMPT, reading)
  expect(await one!.inspect()).toMatchObject({ holders: [{ mode: 'read' }], waiters: [{ mode: 'write' }] })
  expect(await reader.release()).toBe(true)
  expect(await (await within(PROMPT, writing)).release()).toBe(true)
  expect(await one!.inspect()).toMatchObject({ locked: false, waiters: [] })
})

// This test fails if `deaf[ahead] = send(s, ahead, 'ends ' .. ttl .. ' ' .. s.lock) == 0` becomes `deaf[ahead] = false`
// in lua/permits.lua: the dead writer keeps the reader out until it expires.
test('SIGKILL of a waiting writer, while a reader reads: I4, the reader behind it reads by the next heartbeat', async () => {
  const key = freshKey()
  const [one, two] = [client(patient), client({ ...patient, waiterTtl: 3_000 })].map(locks => locks.readWrite(key))
  const peer = await Peer.start(patient, undefined, 'readWrite')
  const held = await one!.read.lock()
  await peer.queue(key, 1, { fair: true })
  const { lease: reading } = await queued(two!.read, 1)
  await peer.kill()
  expect(await (await within(PROMPT, reading)).release()).toBe(true)
  expect(await held.release()).toBe(true)
})

// This test fails if `send(s, client, text) == 0` becomes `not send(s, client, text)` in lua/permits.lua: the dead
// writer is granted the lock.
test('SIGKILL of a waiting writer: I3 I4 I7, the readers behind it read as soon as its turn would have come', async () => {
  const key = freshKey()
  const [one, two] = clients(2).map(locks => locks.readWrite(key))
  const peer = await Peer.start(patient, undefined, 'readWrite')
  const held = await one!.read.lock()
  await peer.queue(key, 1, { fair: true })
  const { lease: reading } = await queued(two!.read, 1)
  await peer.kill()
  expect(await two!.read.tryLock()).toBeNull()
  expect(await held.release()).toBe(true)
  expect(await (await within(PROMPT, reading)).release()).toBe(true)
  expect(await one!.inspect()).toMatchObject({ locked: false, waiters: [] })
})

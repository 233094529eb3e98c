/** Tests the defaults and the effects of a client's options. */
import { once } from 'node:events'
import { hostname } from 'node:os'
import { Worker } from 'node:worker_threads'
import { describe, expect, onTestFinished } from 'vitest'
import { type LockClient, LockClosedError, LockTimeoutError } from '../../src/index.ts'
import { kindsHere } from '../kit/kinds.ts'
import { heard, promptly, rejection, settles } from '../kit/outcomes.ts'
import { park, queueOf } from '../kit/parking.ts'
import { place } from '../kit/place.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

describe('defaults', () => {
  test('the lease of a grant is 30 s, and is renewed', async ({ locks, key }) => {
    const lease = await locks.lock(key)
    expect(lease.remaining()).toBeGreaterThan(25_000)
    expect(lease.remaining()).toBeLessThanOrEqual(30_000)
    const { ttl } = await locks.inspect(key)
    expect(ttl).toBeGreaterThan(25_000)
    expect(ttl).toBeLessThanOrEqual(30_000)
  })

  test('a waiter in the fair queue expires after 10 s', async ({ holder, waiter, key }) => {
    await holder.lock(key)
    await park(waiter, key, { fair: true })
    const [first] = (await holder.inspect(key)).waiters
    expect(first!.expiresIn).toBeGreaterThan(4_000)
    expect(first!.expiresIn).toBeLessThanOrEqual(10_000)
  })

  test('a free lock’s token clock is kept for 10 minutes after its last use', async ({ key }) => {
    const lease = await client().lock(key)
    await lease.release()
    const admin = place().admin()
    const ttls = async (): Promise<number[]> => {
      const [name] = await admin.keysWith(key)
      return name === undefined ? [] : await admin.everywhere(redis => redis.pttl(name))
    }
    // A server of a quorum may hear of the use later than the caller hears of its result.
    await eventually(async () => {
      const found = await ttls()
      return found.length > 0 && found.every(ttl => ttl > 600_000 - 15_000)
    })
  })

  test('calls are unfair for 50 ms, then they join the queue; and lock has no timeout', async ({ key }) => {
    const [holder, waiter] = [client(), client({ fairAfter: undefined })]
    const lease = await holder.lock(key)
    await park(waiter, key, { fairAfter: 5_000 })
    const parked = await park(waiter, key, { fair: undefined, fairAfter: undefined })
    await queueOf(holder, key, 1)
    await sleep(300)
    expect(waiter.stats().waiting).toBe(2)
    await lease.release()
    expect((await parked.lease).held).toBe(true)
  })

  test('the label is host:pid', async ({ locks, key }) => {
    await locks.lock(key)
    expect((await locks.inspect(key)).label).toBe(`${hostname()}:${process.pid}`)
  })

  test('the label of a worker thread is host:pid/thread', async () => {
    const code = `const { parentPort, workerData } = require('node:worker_threads')
      import('tsx/esm/api')
        .then(({ tsImport }) => tsImport(workerData, workerData))
        .then(({ settingsOf }) => parentPort.postMessage(settingsOf({}).label))`
    const thread = new Worker(code, { eval: true, workerData: new URL('../../src/settings.ts', import.meta.url).href })
    onTestFinished(async () => void (await thread.terminate()))
    // Once the thread has ended, it has no id any more.
    const { threadId } = thread
    const [label] = await once(thread, 'message')
    expect(label).toBe(`${hostname()}:${process.pid}/${threadId}`)
  })
})

describe('prefix', () => {
  test('is the first part of every key and channel', async ({ own, key }) => {
    const admin = own.admin()
    const prefix = 'my prefix'
    const [holder, fair, unfair] = [1, 2, 3].map(() => client({ prefix }, own.source({ prefix })))
    await holder!.lock(key)
    await park(unfair!, key)
    await park(fair!, key, { fair: true })
    const names = await admin.keysWith('')
    expect(names.length).toBeGreaterThanOrEqual(2)
    for (const name of names) expect(name).toMatch(/^my prefix:/)
    const channels = await admin.channels()
    expect(channels.length).toBeGreaterThanOrEqual(2)
    for (const channel of channels) expect(channel).toMatch(/^my prefix:/)
  })

  test.for(['*', '[a]', 'a:b', '\\', 'p{q}', '{', 'é"\n'])('%j is a valid prefix', async (odd, { key }) => {
    const prefix = freshKey('') + odd
    const locks = client({ prefix })
    await using lease = await locks.lock(key)
    const found: string[] = []
    for await (const state of locks.list()) found.push(state.key)
    expect(found).toEqual([key])
    expect(lease.held).toBe(true)
  })
})

describe('lease', () => {
  test('is renewed each time a third of it has passed', async () => {
    const locks = client({ lease: 600 })
    const renewals = heard(locks, 'renewed')
    await locks.lock(freshKey())
    await sleep(1_300)
    expect(renewals.length).toBeGreaterThanOrEqual(3)
    expect(renewals.length).toBeLessThanOrEqual(7)
  })
})

describe('waiterTtl', () => {
  test('I4: a queued waiter whose client is alive stays queued for longer than waiterTtl', async ({ holder, key }) => {
    const waiter = client({ waiterTtl: 600 })
    const lease = await holder.lock(key)
    const queued = await park(waiter, key, { fair: true })
    await sleep(1_500)
    const { waiters } = await holder.inspect(key)
    expect(waiters).toHaveLength(1)
    expect(waiters[0]!.expiresIn).toBeLessThanOrEqual(600)
    await lease.release()
    expect((await queued.lease).held).toBe(true)
  })

  test('I7: a queued waiter whose client has gone silent leaves the queue within waiterTtl', async ({ key }) => {
    const holder = client()
    const { source, proxy } = await place().proxied()
    const waiter = client({ waiterTtl: 600, outageTimeout: 2_000 }, source)
    await holder.lock(key)
    await park(waiter, key, { fair: true })
    proxy.swallow('up')
    await queueOf(holder, key, 0)
    await waiter.close()
  })
})

test('tokenMemory is how long a free lock’s token clock is kept', async ({ key }) => {
  const locks = client({ tokenMemory: 300, lease: 300 })
  await (await locks.lock(key)).release()
  const admin = place().admin()
  await eventually(async () => (await admin.keysWith(key)).length === 0, 20_000)
})

describe('defaults for the options of a call', () => {
  test('fair: true queues calls that do not set fair', async ({ holder, key }) => {
    const [waiter, other] = [client({ fair: true }), client({ fair: true })]
    await holder.lock(key)
    const queued = waiter.lock(key)
    queued.catch(() => {})
    await queueOf(holder, key, 1)
    await park(other, key, { fair: false })
    expect((await holder.inspect(key)).waiters).toHaveLength(1)
  })

  test('fairAfter queues unfair calls that do not set fairAfter, once they have waited this long', async ({ key }) => {
    const holder = client()
    const [waiter, other] = [client({ fairAfter: 200 }), client({ fairAfter: 200 })]
    await holder.lock(key)
    await park(other, key, { fairAfter: 60_000 })
    await park(waiter, key, { fairAfter: undefined })
    await queueOf(holder, key, 1)
    await sleep(400)
    expect((await holder.inspect(key)).waiters).toHaveLength(1)
  })

  test('fairAfter: Infinity never queues unfair calls that do not set fairAfter', async ({ key }) => {
    const [holder, waiter] = [client(), client({ fairAfter: Number.POSITIVE_INFINITY })]
    await holder.lock(key)
    await park(waiter, key, { fairAfter: undefined })
    await sleep(1_500)
    expect((await holder.inspect(key)).waiters).toEqual([])
    void rejection(waiter.lock(key, { fairAfter: 100 }), LockClosedError)
    await queueOf(holder, key, 1)
  })

  test('timeout bounds calls of lock and tryLock that do not set timeout', async ({ holder, key }) => {
    const waiter = client({ timeout: 300 })
    const lease = await holder.lock(key)
    const error = await rejection(waiter.lock(key), LockTimeoutError)
    expect(error.waited).toBeGreaterThanOrEqual(300)
    const begin = performance.now()
    expect(await waiter.tryLock(key)).toBeNull()
    expect(performance.now() - begin).toBeGreaterThanOrEqual(300)
    const patient = waiter.lock(key, { timeout: 60_000 })
    await sleep(600)
    await lease.release()
    expect((await patient).held).toBe(true)
  })
})

test('timeout: Infinity means no limit, for a call whatever the client’s default, and for the client', async () => {
  const [hasty, patient, holder] = [client({ timeout: 50 }), client({ timeout: Number.POSITIVE_INFINITY }), client()]
  const endless = { timeout: Number.POSITIVE_INFINITY }
  const [a, b] = [freshKey(), freshKey()]
  const leases = [await holder.lock(a), await holder.lock(b)]
  if (kindsHere.length > 1) leases.push(await holder.semaphore(b, 1).lock())
  const calls: Promise<unknown>[] = [
    hasty.lock(a, endless),
    hasty.tryLock(a, endless),
    hasty.using(a, endless, lease => lease.held),
    hasty.wrap(a, async () => true, endless)(),
    ...(kindsHere.length > 1 ? [hasty.semaphore(b, 1).lock(endless)] : []),
    hasty.all([a, b]).lock(endless),
    hasty.all([a, b]).tryLock(endless),
    patient.lock(a),
    patient.tryLock(a),
  ]
  const release = (result: unknown) => (result as Partial<AsyncDisposable>)[Symbol.asyncDispose]?.()
  const done = Promise.all(calls.map(call => call.then(async result => (await release(result)) ?? result)))
  expect(await settles(Promise.race(calls), 500)).toBe(false)
  for (const lease of leases) await lease.release()
  expect(await promptly(done)).not.toContain(null)
})

test('label is shown to other clients for holders and waiters', async ({ key }) => {
  const holder = client({ label: 'the "holder" é' })
  const waiter = client({ label: 'the waiter\n2' })
  await holder.lock(key)
  await park(waiter, key, { fair: true })
  const other = client()
  const state = await other.inspect(key)
  expect(state.label).toBe('the "holder" é')
  expect(state.waiters[0]!.label).toBe('the waiter\n2')
  const error = await rejection(other.lock(key, { timeout: 1_000 }), LockTimeoutError)
  expect(error.holder?.label).toBe('the "holder" é')
})

describe('label of a call', () => {
  test.each<[string, (locks: LockClient, key: string, work: () => Promise<void>) => Promise<void>]>([
    ['lock', async (locks, key, work) => await locks.lock(key, { label: 'this call' }).then(work)],
    ['tryLock', async (locks, key, work) => await locks.tryLock(key, { label: 'this call' }).then(work)],
    ['using', (locks, key, work) => locks.using(key, { label: 'this call' }, work)],
    ['wrap', (locks, key, work) => locks.wrap(key, work, { label: 'this call' })()],
  ])('%s: replaces the client’s label, in the view of other clients and of its own', async (_, call) => {
    const [locks, other] = [client({ label: 'the client' }), client()]
    const key = freshKey()
    await call(locks, key, async () => {
      expect((await other.inspect(key)).label).toBe('this call')
      for (const each of [locks, other]) {
        const waits = heard(each, 'waiting')
        const error = await rejection(each.lock(key, { timeout: 500, owner: 'somebody else' }), LockTimeoutError)
        expect(error.holder?.label).toBe('this call')
        expect(waits[0]?.holder?.label).toBe('this call')
      }
    })
  })

  test('is shown for queued waiters, and for the next holder', async ({ key }) => {
    const [locks, other] = [client({ label: 'the client' }), client()]
    const holder = await locks.lock(key)
    const next = await park(locks, key, { fair: true, label: 'the next' })
    await park(other, key, { fair: true, label: '' })
    const { label, waiters } = await other.inspect(key)
    expect([label, ...waiters.map(waiter => waiter.label)]).toEqual(['the client', 'the next', ''])
    await holder.release()
    await next.lease
    expect((await other.inspect(key)).label).toBe('the next')
  })

  test('is shown for holders in a run of local hand-offs', async ({ key }) => {
    const [locks, other] = [client({ label: 'the client' }), client()]
    const calls = Array.from({ length: 5 }, (_, i) => locks.lock(key, { fair: false, label: `call ${i}` }))
    for (const call of calls.slice(0, 4)) await (await call).release()
    await calls[4]
    await eventually(async () => (await other.inspect(key)).label === 'call 4')
  })
})

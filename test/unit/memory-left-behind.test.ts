/** Tests that a store in memory keeps nothing that is over (I7), and that what it keeps does not keep the process alive. */
import { afterEach, expect, vi } from 'vitest'
import type { MemoryHub } from '../../src/memory/hub.ts'
import { memory } from '../../src/memory/index.ts'
import { runNode } from '../kit/program.ts'
import { client, freshKey, test } from '../kit/redis.ts'

afterEach(() => {
  vi.useRealTimers()
})

test('a lock that nobody uses has no timer, and leaves nothing in the store (I7)', async ({ key }) => {
  vi.useFakeTimers()
  const store = memory()
  const locks = client({}, store)
  await locks.using(key, () => locks.using(key, () => {}))
  const lease = await locks.lock(key)
  const next = locks.lock(key)
  await lease.release()
  await locks.tryLock(key)
  await (await next).release()
  await locks.readWrite(key).read.using(() => locks.semaphore(key, 2).using(() => locks.inspect(key)))
  expect(vi.getTimerCount()).toBe(0)
  expect((store as MemoryHub).locks.size).toBe(0)
})

test.each(['minHold', 'a client that is cut off for good'])(
  'keys that are used once leave nothing in the store (I7): %s',
  async why => {
    vi.useFakeTimers()
    const store = memory()
    const [locks, other] = [client({}, store), client({}, store)]
    for (let i = 0; i < 50; i++) {
      const key = freshKey()
      const { read, write } = locks.readWrite(`${key} of readers`)
      for (const lock of [locks.mutex(key), locks.semaphore(key, 2), i % 2 ? read : write]) {
        const held = await lock.lock(why === 'minHold' ? { minHold: 500 } : { lease: 400 })
        if (why === 'minHold') await held.release()
      }
    }
    store.disconnect(locks)
    if (why === 'minHold') store.reconnect(locks)
    expect((store as MemoryHub).locks.size).toBe(150)
    const next = other.lock(freshKey())
    await vi.advanceTimersByTimeAsync(600)
    expect((store as MemoryHub).locks.size).toBe(1)
    await (await next).release()
    expect((store as MemoryHub).locks.size).toBe(0)
  },
)

/** Runs a program with a store and two clients, none of which it closes. It should end by itself. */
async function unclosed(program: string) {
  const text = `
    import { LockClient } from './src/index.ts'
    import { memory } from './src/memory/index.ts'
    const store = memory()
    const [locks, other] = [new LockClient(store), new LockClient(store, { outageTimeout: 300 })]
    setTimeout(() => console.log('still there'), 30_000).unref()
    ${program}
    await new Promise(setImmediate)
    console.log('timers:', process.getActiveResourcesInfo().filter(name => name === 'Timeout').length)
  `
  const { code, output, errors } = await runNode(['--import', 'tsx', '--input-type', 'module', '-e', text])
  return [code, errors, ...output.trim().split('\n')]
}

/** What a test may leave behind. */
const leftBehind = {
  'a lease that is renewed, of each kind': `
    await Promise.all([locks.lock('a'), locks.semaphore('a', 2).lock(), locks.readWrite('a').read.lock()])`,
  'a lease of a fixed length': `await locks.lock('a', { lease: 60_000, renew: false })`,
  'what `minHold` keeps taken': `await (await locks.lock('a', { minHold: 60_000 })).release()`,
  'a store that is disconnected': `store.disconnect(); await locks.tryLock('a').catch(() => {})`,
  'a lease and a store that is disconnected': `await locks.lock('a', { lease: 60_000 }); store.disconnect()`,
  'a lease that was lost in an outage, and a call that gave up': `
    await locks.lock('a', { lease: 200 })
    store.disconnect()
    await locks.lock('b', { timeout: 300 }).catch(() => {})`,
  'waiters that gave up': `
    await locks.lock('a')
    const ways = [locks, other].flatMap(each => [false, true].map(fair => each.tryLock('a', { timeout: 100, fair })))
    await Promise.all(ways)`,
  'waiters that were granted the lock': `
    const first = await locks.lock('a')
    const waits = [locks.lock('a'), other.lock('a', { fair: true })].map(async wait => (await wait).release())
    await first.release()
    await Promise.all(waits)`,
}

test.each(Object.entries(leftBehind))('keeps no process alive: %s', async (_, program) => {
  expect(await unclosed(program)).toEqual([0, '', 'timers: 0'])
})

test('but a call that is not answered yet does: a wait for the end of a lease, and what rejects in an outage', async () => {
  const program = `
    await locks.lock('a', { lease: 300, renew: false })
    console.log((await other.lock('a')).via, await other.tryLock('a', { timeout: 100 }))
    const lease = await other.lock('b')
    const wait = other.lock('a')
    store.disconnect()
    const calls = [wait, other.lock('c'), lease.renew(), lease.release(), other.inspect('a')]
    console.log((await Promise.allSettled(calls)).map(({ reason }) => reason?.code).join(' '))
  `
  const rejected = Array(5).fill('ERR_LOCK_CONNECTION').join(' ')
  expect(await unclosed(program)).toEqual([0, '', 'expiry null', rejected, 'timers: 0'])
})

test('needs no timer, also where `process.nextTick` is faked', async () => {
  const program = `
    const { nextTick } = process
    const { queueMicrotask, setImmediate } = globalThis
    process.nextTick = globalThis.queueMicrotask = globalThis.setImmediate = () => {}
    const lease = await locks.lock('key')
    const next = locks.lock('key', { fair: true })
    await locks.semaphore('key', 1).using(() => lease.release())
    await (await next).release()
    Object.assign(process, { nextTick })
    Object.assign(globalThis, { queueMicrotask, setImmediate })
  `
  expect(await unclosed(program)).toEqual([0, '', 'timers: 0'])
})

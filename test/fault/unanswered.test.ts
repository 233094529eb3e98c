/**
 * Tests how each call ends if Redis answers none of its requests, or answers the first one only after the call's
 * `timeout`.
 */
import { describe, expect, test } from 'vitest'
import { type Lock, type LockClient, LockConnectionError, type LockOptions, LockTimeoutError } from '../../src/index.ts'
import { outcomeOf, promptly, within } from '../kit/outcomes.ts'
import { faultProxy } from '../kit/proxies.ts'
import { client, freshKey, ownServer } from '../kit/redis.ts'
import { persistsEveryWrite } from '../kit/topologies/quorum-server.ts'

/** Three servers, each behind a proxy, and functions that make clients of the first of them and of all. */
async function servers() {
  const all = await Promise.all([1, 2, 3].map(() => ownServer(...persistsEveryWrite)))
  const proxies = await Promise.all(all.map(({ url }) => faultProxy(url)))
  const urls = proxies.map(({ url }) => url)
  const options = { outageTimeout: 2_500 }
  return { all, proxies, one: () => client(options, urls[0]), quorum: () => client(options, urls) }
}

/** Locks of each kind, which can all be held at the same time. */
function locksOf(one: LockClient, quorum: LockClient, key = freshKey(), side: 'read' | 'write' = 'read') {
  return {
    mutex: one.mutex(key),
    reader: one.readWrite(`${key} r`)[side],
    writer: one.readWrite(key).write,
    semaphore: one.semaphore(key, 1),
    'all of one': one.all([`${key} 1`]),
    'all of several': one.all([`${key} 2`, `${key} 3`, one.semaphore(`${key} 4`, 1)]),
    quorum: quorum.mutex(`${key} q`),
  }
}

const ways: Record<string, (lock: Lock, options: LockOptions) => Promise<unknown>> = {
  lock: (lock, options) => lock.lock(options),
  'fair lock': (lock, options) => lock.lock({ ...options, fair: true }),
  tryLock: (lock, options) => lock.tryLock(options),
  using: (lock, options) => lock.using(options, () => 'ran'),
  wrap: (lock, options) => lock.wrap(() => 'ran', options)(),
}

const faults = {
  'is silent': async () => {
    const { proxies, one, quorum } = await servers()
    const clients = [one(), quorum()] as const
    await Promise.all(clients.map(locks => locks.isLocked('any')))
    for (const proxy of proxies) proxy.hold('down')
    return clients
  },
  'has never answered': async () => {
    const { proxies, one, quorum } = await servers()
    for (const proxy of proxies) proxy.hold('down')
    return [one(), quorum()] as const
  },
  'is known to be down': async () => {
    const { all, one, quorum } = await servers()
    const clients = [one(), quorum()] as const
    await Promise.all(clients.map(locks => locks.isLocked('any')))
    const down = clients.map(locks => new Promise(resolve => locks.once('disconnected', resolve)))
    await Promise.all(all.map(server => server.stop()))
    await Promise.all(down)
    return clients
  },
}

describe.each(Object.entries(faults))('Redis %s', (_, fault) => {
  // This test fails if `unanswered && !blocking` becomes `false` in src/compose/all.ts: `tryLock` of several locks
  // resolves to null. It also fails if `this.requests.outage ?? unanswered` becomes `this.requests.outage` in
  // src/kind-client.ts: the error of a call that ran out of time does not say why.
  test('I6 no call says that another owner has the lock, whatever its kind and its timeout', async () => {
    const clients = await fault()
    const calls = Object.entries(locksOf(...clients)).flatMap(([kind, lock]) =>
      Object.entries(ways).flatMap(([way, call]) =>
        [undefined, 0, 1, 150].map(async timeout => {
          const { error, value } = await outcomeOf(call(lock as never, timeout === undefined ? {} : { timeout }))
          const late = timeout && way !== 'tryLock'
          expect
            .soft(error, `${kind}, ${way}, ${timeout}: ${value}`)
            .toBeInstanceOf(late ? LockTimeoutError : LockConnectionError)
          expect.soft(error?.cause, `${kind}, ${way}, ${timeout}`).toBeInstanceOf(Error)
        }),
      ),
    )
    await within(6_000, Promise.all(calls))
  })
})

// This test fails if `else this.#single.asked(waiter)` becomes `else this.end(waiter, undefined)` in
// src/key/requests.ts: a call whose `timeout` is shorter than the first connection takes does worse than a single
// attempt. It also fails if `this.#single.has(waiter)` becomes `false` in src/key/requests.ts: a call for a lock that
// is taken waits on.
test.each(Object.entries(ways))('I6 the first attempt of %s has a second for its answer', async (_, call) => {
  const { proxies, one, quorum } = await servers()
  const [taken, free] = [freshKey(), freshKey()]
  await Promise.all(Object.values(locksOf(one(), quorum(), taken, 'write')).map(lock => lock.lock()))
  for (const proxy of proxies) proxy.delay(15)
  for (const timeout of [1, 10]) {
    const outcomes = (key: string) =>
      Object.values(locksOf(one(), quorum(), key)).map(lock => outcomeOf(call(lock as never, { timeout })))
    for (const { value, error } of await promptly(Promise.all(outcomes(`${free} ${timeout}`))))
      expect(value, error?.message).toBeTruthy()
    for (const { value, error } of await promptly(Promise.all(outcomes(taken)))) {
      if (value !== null) expect(error).toBeInstanceOf(LockTimeoutError)
      expect(error?.cause).toBeUndefined()
    }
  }
})

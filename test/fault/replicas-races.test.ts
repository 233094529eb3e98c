/**
 * Tests the option `replicas`: what happens between a grant and its confirmation, and how many requests are sent if a
 * grant cannot be confirmed. The kind of lock makes no difference.
 */
import { expect } from 'vitest'
import { type LockClient, LockConnectionError } from '../../src/index.ts'
import { calls, scriptCalls } from '../kit/command-stats.ts'
import { outcomeOf, within, wordsOf } from '../kit/outcomes.ts'
import { ways } from '../kit/parking.ts'
import { frameProxy, warm } from '../kit/proxies.ts'
import { client, freshKey, ownServer, plainRedis, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

// This test fails if ` || grant.token !== this.latest` is removed in src/key/waiter.ts and `tonumber(token) > known`
// becomes `false` in lua/mutex/renew.lua: the lease has the token of the first grant.
test('I2: a confirmation of another grant to the same waiter does not count', async ({ key }) => {
  const master = await ownServer('--repl-diskless-sync-delay', '0')
  await ownServer('--replicaof', '127.0.0.1', String(master.port))
  await eventually(async () => (await plainRedis(master.url).wait(1, 500)) === 1, 15_000)
  const proxy = await frameProxy(master.url)
  const locks = client({ waiterTtl: 900, replicas: { min: 1, timeout: 2_000 } }, proxy.url)
  const other = client({}, master.url)
  await warm(locks)
  const held = await other.lock(key)
  // Hold back the answer to one WAIT. The confirmation of the next grant has to wait for this answer.
  const answer = proxy.rule({ direction: 'down', name: 'wait' }, 'hold')
  const first = locks.lock(freshKey())
  await answer.happened
  const wait = locks.lock(key, { fair: true })
  await new Promise(resolve => locks.once('waiting', resolve))
  await held.release()
  await eventually(() => other.isLocked(key))
  expect(await other.forceRelease(key)).toBe(true)
  const between = await other.lock(key)
  await eventually(async () => (await other.inspect(key)).waiters.length === 1)
  await between.release()
  await eventually(async () => ((await other.inspect(key)).fencingToken ?? 0) > between.fencingToken)
  // After this time the client knows of the waiter's second grant, but the replica has not confirmed the second grant
  // yet.
  await sleep(50)
  answer.lift()
  const lease = await within(5_000, wait)
  expect(lease.fencingToken).toBeGreaterThan(between.fencingToken)
  expect(lease.held).toBe(true)
  expect((await other.inspect(key)).fencingToken).toBe(lease.fencingToken)
  expect((await first).held).toBe(true)
})

// This test fails if `milliseconds: this.#outageTimeout,` becomes `milliseconds: 60_000,` in src/redis/replication.ts:
// the call waits for the end of another call's confirmation, and only then begins to wait for its own. It also fails if
// `waiter.unconfirmedSince ??= begun` becomes `waiter.unconfirmedSince ??= now` in src/key/key-state.ts: the call's
// outageTimeout begins a second time.
test('I6: a confirmation that waits for another also ends within outageTimeout', async () => {
  const outageTimeout = 2_000
  const { url } = await ownServer()
  const proxy = await frameProxy(url)
  const locks = client({ outageTimeout, replicas: { min: 1, timeout: 50 } }, proxy.url)
  // This call makes the client connect, and loads the scripts into the server.
  await outcomeOf(locks.tryLock(freshKey()))
  const asked = proxy.rule({ direction: 'up', name: 'wait' }, 'drop')
  const first = outcomeOf(locks.tryLock(freshKey()))
  await asked.happened
  const behind: ((key: string) => ReturnType<LockClient['tryLock']>)[] = [
    key => locks.tryLock(key),
    key => locks.lock(key),
    key => locks.lock(key, { fair: true }),
  ]
  const outcomes = [first, ...behind.map(call => outcomeOf(call(freshKey())))]
  for (const { error } of await within(1.7 * outageTimeout, Promise.all(outcomes)))
    expect(error).toBeInstanceOf(LockConnectionError)
})

// This test fails if `this.#clock.after(UNDO_PAUSE, () => state.undone(waiter, this.#clock.now()))` becomes
// `state.undone(waiter, this.#clock.now())` in src/key/io.ts: the client sends hundreds of requests.
test.each(ways)('I9: if WAIT is refused, it is not sent again at once (fair: %s)', async fair => {
  const { url, port } = await ownServer()
  const redis = plainRedis(url)
  await redis.acl('SETUSER', 'most', 'on', '>pw', '~*', '&*', '+@all', '-wait')
  const outageTimeout = 1_000
  const locks = client(
    { outageTimeout, replicas: { min: 1, timeout: 50 } },
    { host: '127.0.0.1', port, username: 'most', password: 'pw' },
  )
  await outcomeOf(locks.tryLock(freshKey(), { fair }))
  const before = await calls(redis)
  const { error } = await within(5_000, outcomeOf(locks.lock(freshKey(), { fair })))
  expect(wordsOf(error)).toMatch(/NOPERM/)
  // The client requests the lock again every 50 ms. Each time, three scripts run: the first grants the lock, the second
  // confirms the grant, and the third undoes it. The third script may wake the waiter, which then runs all three
  // scripts once more. So at most six scripts run in 50 ms.
  expect(scriptCalls(await calls(redis, before))).toBeLessThan(6 * (outageTimeout / 50))
})

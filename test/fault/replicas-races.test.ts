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
import { eventually } from '../kit/time.ts'

// This test fails if `error === undefined && step.hold.remaining(now) > 0` becomes `step.hold.token > 0` in
// src/replicated.ts: the call gets a lease that has ended. It also fails if `const id = context.backend.ids.next()`
// becomes `const id = this.waiter?.claim.id ?? context.backend.ids.next()` in src/call.ts: the call asks with the id
// that it has just taken back.
test('I2: a hold that is taken away while replicas are asked does not count', async ({ key }) => {
  const master = await ownServer('--repl-diskless-sync-delay', '0')
  await ownServer('--replicaof', '127.0.0.1', String(master.port))
  await eventually(async () => (await plainRedis(master.url).wait(1, 500)) === 1, 15_000)
  const proxy = await frameProxy(master.url)
  const locks = client({ waiterTtl: 900, replicas: { min: 1, timeout: 2_000 } }, proxy.url)
  const other = client({}, master.url)
  await warm(locks)
  const held = await other.lock(key)
  // Hold back the answer to one WAIT. The question about the next hold has to wait for this answer.
  const answer = proxy.rule({ direction: 'down', name: 'wait' }, 'hold')
  const first = locks.lock(freshKey())
  await answer.happened
  const wait = locks.lock(key, { fair: true })
  await new Promise(resolve => locks.once('waiting', resolve))
  await held.release()
  await eventually(() => other.isLocked(key))
  const [holder] = (await other.inspect(key)).holders
  expect(await other.forceRelease(key)).toBe(true)
  const between = await other.lock(key)
  answer.lift()
  await eventually(async () => (await other.inspect(key)).waiters.length === 1)
  await between.release()
  const lease = await within(5_000, wait)
  expect(lease.fencingToken).toBeGreaterThan(between.fencingToken)
  expect(lease.id).not.toBe(holder?.id)
  expect(lease.held).toBe(true)
  expect((await other.inspect(key)).fencingToken).toBe(lease.fencingToken)
  expect(locks.stats().lost).toBe(0)
  expect((await first).held).toBe(true)
})

// This test fails if `milliseconds: this.#outageTimeout,` becomes `milliseconds: 60_000,` in src/redis/replication.ts:
// the call waits for the end of another call's confirmation, and only then begins to wait for its own. It also fails if
// `call.replicasAsked ??= now` becomes `call.replicasAsked = Number.POSITIVE_INFINITY` in src/replicated.ts: the call's
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

// This test fails if `const PAUSE = 50` becomes `const PAUSE = 0` in src/replicated.ts: the client sends hundreds of
// requests.
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
  // confirms the grant, and the third undoes it.
  expect(scriptCalls(await calls(redis, before))).toBeLessThan(4 * (outageTimeout / 50))
})

/**
 * Tests the option `replicas`. With this option, a grant counts only after a replica has confirmed it. Some tests use a
 * replica that does not receive the grant. Kinds other than the mutex are tested only where their scripts matter:
 * "renew" confirms a grant, and "leave" undoes it.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { type ClientOptions, LockConnectionError, LockLostError } from '../../src/index.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { kinds, kindsAndWays } from '../kit/kinds.ts'
import { aborted, outcomeOf, within, wordsOf } from '../kit/outcomes.ts'
import { parkQuietly, ways } from '../kit/parking.ts'
import { bluntRedis, client, freshKey, nothingLeft, ownServer, plainRedis } from '../kit/redis.ts'
import { type Place, Replication } from '../kit/replication.ts'
import { aclRule } from '../kit/rights.ts'
import { eventually, sleep } from '../kit/time.ts'

const replicas = { min: 1, timeout: 100 }
/** With this timeout a working replica confirms in time even on a busy machine. */
const patient = { replicas: { min: 1, timeout: 2_000 } }

/** Starts a master and a replica whose link can lose writes. Makes clients with and without `replicas`. */
async function scene({ client } = kinds[0]!) {
  const master = await ownServer('--repl-diskless-sync-delay', '0')
  const replica = await ownServer()
  const place = ({ url }: { url: string }): Place => ({ url, redis: bluntRedis(url) })
  const follower = place(replica)
  const replication = await Replication.begin(place(master), follower)
  onTestFinished(() => replication.close())
  // Wait for the first acknowledgement of the new replica, which takes up to a second.
  await eventually(async () => (await plainRedis(master.url).wait(1, 500)) === 1, 15_000)
  const careless = (options: ClientOptions = {}) => client({ waiterTtl: 3_000, ...options }, master.url)
  return {
    key: freshKey(),
    redis: plainRedis(master.url),
    replica,
    careless,
    careful: (options: ClientOptions = {}) => careless({ replicas, ...options }),
    loseWrites: () => replication.loseWrites(),
    promote: () => replication.promote(),
    /** Lets the replica follow the master again, without the link that can lose writes. */
    async heal() {
      await follower.redis.replicaof('127.0.0.1', master.port)
      await eventually(async () => /master_link_status:up/.test(await follower.redis.info('replication')), 15_000)
    },
  }
}

describe('with a replica that receives writes', () => {
  // This test fails if `if (count >= min)` becomes `if (count > min)` in src/redis/replication.ts: no grant counts, and
  // no caller gets the lock.
  test.each(kindsAndWays.filter(({ kind, fair }) => kind === 'mutex' || fair))(
    'I1 I2 I7: a lock is handed on as usual ($kind, fair: $fair)',
    async ({ fair, ...kind }) => {
      const { key, redis, careful } = await scene(kind)
      const clients = [careful(patient), careful(patient)]
      let holders = 0
      const tokens: number[] = []
      const visit = async (i: number) => {
        const lease = await clients[i % 2]!.lock(key, { fair })
        expect([++holders, lease.held]).toEqual([1, true])
        tokens.push(lease.fencingToken)
        await sleep(1)
        holders -= 1
        expect(await lease.release()).toBe(true)
      }
      await within(10_000, Promise.all(Array.from({ length: 20 }, (_, i) => visit(i))))
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
      await nothingLeft(redis, clients[0]!, key)
    },
  )

  // This test fails if `this.renewUntil > now ? this.length : 0` becomes `0` in src/key/hold.ts: the lease is confirmed
  // but not prolonged, and so is lost. It also fails if `if (count >= min)` becomes `if (count > min)` in
  // src/redis/replication.ts: the grant does not count.
  test('a lease is renewed, and tryLock takes a free lock and returns null for a held lock', async () => {
    const { key, careful } = await scene()
    const [holder, other] = [careful({ ...patient, lease: 1_500 }), careful(patient)]
    const lease = await holder.tryLock(key)
    expect(await other.tryLock(key)).toBeNull()
    await sleep(3_000)
    expect(lease?.held).toBe(true)
    expect(await lease?.release()).toBe(true)
    expect((await other.tryLock(key))?.held).toBe(true)
  })

  // This test fails if `kind.traits.replicated` becomes `false` in src/kind-client.ts: the replica becomes the master without
  // the grant, and grants the lock again. (On a busy machine, the replica sometimes gets the grant in time. The test
  // then passes in spite of the change.)
  test('I1: a grant survives the failover', async () => {
    const { key, replica, careful, promote } = await scene()
    const lease = await careful(patient).lock(key)
    await promote()
    const other = client({}, replica.url)
    expect(await other.tryLock(key)).toBeNull()
    expect((await other.inspect(key)).fencingToken).toBe(lease.fencingToken)
  })
})

describe('with a replica that does not receive writes', () => {
  // This test fails if `kind.traits.replicated` becomes `false` in src/kind-client.ts: the attempt gets the lock, although no
  // replica knows of it. It also fails if `this.#requests.leave(waiter)` is removed in src/replicated.ts: the lock is
  // not free until the lease ends.
  test.each(ways)('a single attempt rejects, and the lock is free (fair: %s)', async fair => {
    const { key, careful, careless, loseWrites } = await scene()
    const [locks, other] = [careful(), careless()]
    await loseWrites()
    const { error } = await outcomeOf(locks.tryLock(key, { fair }))
    expect(error).toBeInstanceOf(LockConnectionError)
    expect(wordsOf(error)).toBe('0 of 1 required replicas confirmed the grant within 100 ms')
    const free = await within(3_000, other.lock(key))
    expect(free.held).toBe(true)
  })

  // This test fails if `now + PAUSE - (call.replicasAsked as number) >= this.#patience` becomes `true` in
  // src/replicated.ts: the call rejects at once. It also fails if `call.ask(this.#clock.now())` is removed in src/replicated.ts: the
  // caller does not ask again.
  test.each(ways)('I4: a call continues to wait, and is granted when the replica is back (fair: %s)', async fair => {
    const { key, redis, careful, loseWrites, heal } = await scene()
    const locks = careful()
    await loseWrites()
    const wait = locks.lock(key, { fair })
    await sleep(500)
    expect(locks.stats()).toMatchObject({ waiting: 1, acquired: 0, holding: 0 })
    await heal()
    const lease = await within(5_000, wait)
    expect(lease.held).toBe(true)
    expect(await lease.release()).toBe(true)
    await nothingLeft(redis, locks, key)
  })

  // This test fails if `call.replicasAsked ??= now` becomes `call.replicasAsked = now` in src/replicated.ts: the call's
  // outageTimeout begins again with each grant, so the call waits for ever. It also fails if
  // `this.#requests.leave(waiter)` is removed in src/replicated.ts: the last grant is not undone.
  test.each(ways)('I6: if the replica stays away, the call rejects after outageTimeout (fair: %s)', async fair => {
    const { key, redis, careful, loseWrites } = await scene()
    const locks = careful({ outageTimeout: 800 })
    await loseWrites()
    const { error } = await within(5_000, outcomeOf(locks.lock(key, { fair })))
    expect(error).toMatchObject({ code: 'ERR_LOCK_CONNECTION', key })
    await nothingLeft(redis, locks, key)
  })

  // This test fails if `clock.after(timeout, ` becomes `clock.after(2 ** 30, ` in src/key/limits.ts: the call with a
  // timeout keeps waiting. It also fails if `audience.add(tell)` is removed in src/key/limits.ts: the call with a
  // signal keeps waiting. It also fails if `this.#requests.leave(waiter)` is removed in src/replicated.ts: the grant to
  // a caller that gave up is not undone.
  test.each(ways)('I6 I7: timeout and abort end the wait for a confirmation (fair: %s)', async fair => {
    const { key, redis, careful, loseWrites } = await scene()
    const locks = careful({ replicas: { min: 1, timeout: 3_750 } })
    await (await locks.lock(freshKey(), { fair })).release()
    await loseWrites()
    const gaveUp = new AbortController()
    const waits = [
      outcomeOf(locks.lock(key, { fair, timeout: 500 })),
      outcomeOf(locks.lock(`${key}-b`, { fair, signal: gaveUp.signal })),
    ]
    await eventually(() => redis.exists(`lock:{${key}-b}`))
    gaveUp.abort(new Error('enough'))
    const [late, aborted] = await within(3_000, Promise.all(waits))
    expect(late?.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT' })
    expect(aborted?.error).toMatchObject({ message: 'enough' })
    await nothingLeft(redis, locks, key)
  })

  // This test fails if `this.late = true` is removed in src/call.ts: the call asks for the lock again until outageTimeout
  // is over.
  test.each(ways)(
    'I6: a timeout that is over before the first answer ends the call after one confirmation (fair: %s)',
    async fair => {
      const { key, redis, careful, loseWrites } = await scene()
      await loseWrites()
      await redis.client('PAUSE', 300, 'ALL')
      const wait = outcomeOf(careful().lock(key, { fair, timeout: 10 }))
      expect((await within(5_000, wait)).error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT' })
    },
  )

  // This test fails if `kind.traits.replicated` becomes `false` in src/kind-client.ts: the first waiter gets the lock,
  // although no replica knows of it. It also fails if `this.#requests.leave(waiter)` is removed in src/replicated.ts:
  // the hand-off is not undone, and the next waiter does not get the lock. It also fails if `call.ask(this.#clock.now())` is removed in
  // src/replicated.ts: the first waiter does not join the queue again.
  test.each(kinds)(
    'I4: a hand-off that the replica lacks is undone; the next waiter gets the lock, and the first joins again ($kind)',
    async kind => {
      const { key, careful, careless, loseWrites, heal } = await scene(kind)
      const [holder, first, second] = [careless(), careful(), careless()]
      const lease = await holder.lock(key)
      const waits = []
      for (const locks of [first, second]) waits.push((await parkQuietly(locks, key, { fair: true })).lease)
      await loseWrites()
      await lease.release()
      const next = await within(3_000, waits[1]!)
      expect(first.stats()).toMatchObject({ acquired: 0, waiting: 1 })
      await eventually(async () => (await holder.inspect(key)).waiters.length === 1)
      await heal()
      await next.release()
      const granted = await within(5_000, waits[0]!)
      expect(granted.fencingToken).toBeGreaterThan(next.fencingToken)
      await granted.release()
    },
  )

  // This test fails if `scripts = this.#confirmed` becomes `scripts = this.#scripts` in src/kinds/queued-kind.ts: the
  // lease is renewed for ever.
  test('I8: a lease whose renewals the replica does not receive is lost at its end, and reports this', async () => {
    const { key, careful, loseWrites } = await scene()
    const lease = await careful({ lease: 900 }).lock(key)
    await loseWrites()
    await within(3_000, aborted(lease.signal))
    expect(lease.signal.reason).toBeInstanceOf(LockLostError)
    expect(lease.held).toBe(false)
  })
})

// This test fails if `'the lock was not replicated', cause` becomes `'the lock was not replicated'` in
// src/redis/replication.ts: the error has no cause. It also fails if `if (count >= min)` becomes `if (count >= 0)` in
// src/redis/replication.ts: the call gets the lock.
test('without any replica a call reports how many replicas it found', async () => {
  const { url } = await ownServer()
  const { error } = await outcomeOf(client({ replicas: { min: 2, timeout: 50 } }, url).tryLock(freshKey()))
  expect(wordsOf(error)).toBe('0 of 2 required replicas confirmed the grant within 50 ms')
})

// This test fails if `...waits]` becomes `]` in test/kit/rights.ts: the ACL rule does not contain the right +wait.
test('the right to WAIT is in the ACL rule, and is named if it is missing', async () => {
  const { url, port } = await ownServer()
  const admin = plainRedis(url)
  const rule = aclRule([mutex], { replicas })
  const come = async (name: string, rights: readonly string[]) => {
    await admin.acl('SETUSER', name, 'on', '>pw', ...rights)
    const locks = client({ replicas }, { host: '127.0.0.1', port, username: name, password: 'pw' })
    const errors: Error[] = []
    locks.on('error', ({ error }) => errors.push(error))
    return { errors, reason: wordsOf((await outcomeOf(locks.tryLock(freshKey()))).error) }
  }
  expect(await come('all', rule)).toEqual({
    errors: [],
    reason: '0 of 1 required replicas confirmed the grant within 100 ms',
  })
  const most = rule.filter(right => right !== '+wait')
  expect(await come('most', most)).toEqual({ errors: [], reason: expect.stringMatching(/NOPERM.*'wait'/) })
})

// This test fails if `call.mode === 'once' || ` is removed in src/replicated.ts: the attempt is made again.
test('a grant that lapses during its confirmation: I6, a single attempt ends without the lock, and gives the reason', async () => {
  const { key, redis, replica, careful, careless } = await scene()
  const [locks, other] = [careful(patient), careless()]
  await (await locks.lock(freshKey())).release()
  const slow = plainRedis(replica.url)
  await slow.ping()
  await slow.client('PAUSE', 1_500, 'ALL')
  const attempt = outcomeOf(locks.tryLock(key, { lease: 100 }))
  // The key stays after the lease.
  await eventually(() => redis.exists(`lock:{${key}}`))
  const held = await other.lock(key)
  const { error } = await within(4_000, attempt)
  expect(error).toBeInstanceOf(LockConnectionError)
  expect(wordsOf(error)).toBe('the lease ended before enough replicas had confirmed the grant')
  expect(await held.release()).toBe(true)
})

// This test fails if `pipeline.call('waitaof', 0, min, timeout)` becomes `pipeline.wait(min, timeout)` in
// src/redis/replication.ts: the client never sends the command that the server lacks. (The test fails only on a server
// without WAITAOF.)
test('a server without WAITAOF is reported if fsync is wanted', async () => {
  const { url } = await ownServer()
  const redis = plainRedis(url)
  const known = (await redis.call('COMMAND', 'COUNT')) && (await redis.call('COMMAND', 'INFO', 'WAITAOF'))
  const { error } = await outcomeOf(client({ replicas: { min: 1, timeout: 50, fsync: true } }, url).tryLock(freshKey()))
  expect(error).toBeInstanceOf(LockConnectionError)
  const offered = Array.isArray(known) && known[0] !== null
  expect(wordsOf(error)).toMatch(offered ? /0 of 1 replicas/ : /unknown command/i)
})

/**
 * Tests messages that are lost, duplicated, early, late or forged. Messages are only hints: a wrong message may cost
 * time or a request, but never a lock.
 */
import { describe, expect } from 'vitest'
import { Memory, RecordedClient, violationsIn } from '../history/recorded.ts'
import { type Kinds, kinds, kindsAndWays } from '../kit/kinds.ts'
import { aborted, outcomeOf, within } from '../kit/outcomes.ts'
import { park, parkQuietly } from '../kit/parking.ts'
import { clientBehindProxy, type FrameProxy } from '../kit/proxies.ts'
import { freshKey, nothingLeft, plainRedis, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

/** With these options, no heartbeat comes and no lease ends during a test. */
const patient = { waiterTtl: 60_000, lease: 60_000 }
const root = 'lock:inbox:'
const messages = ['handoff', 'expiry', 'lost', 'free'] as const

function allMessages(proxy: FrameProxy, deed: 'drop' | 'hold' | 'twice') {
  return messages.map(name => proxy.rule({ direction: 'down', kind: 'messages', name }, deed))
}

describe('messages are lost', () => {
  const waiterTtl = 1_800

  // This test fails if `Math.min(ttl + AFTER_LAPSE, this.#port.pause)` becomes `ttl + AFTER_LAPSE` in src/key/key.ts:
  // no waiter checks before the lease ends.
  test.for(kindsAndWays)(
    'the message of a release: I4, the waiter notices within a heartbeat ($kind, fair: $fair)',
    async ({ fair, client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy({ waiterTtl })
      const lost = allMessages(proxy, 'drop')
      const held = await client().lock(key)
      const { lease: wait } = await parkQuietly(locks, key, { fair })
      await held.release()
      const lease = await within(waiterTtl / 3 + 300, wait)
      expect(lost.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThan(0)
      expect(lease.fencingToken).toBeGreaterThan(held.fencingToken)
      expect(await lease.release()).toBe(true)
      await nothingLeft(plainRedis(), locks, key)
    },
  )

  // This test fails if `return hold.keeper.onUnknown(hold)` becomes `renewed = this.#clock.now() + question.ms` in
  // src/key/renewals.ts: a missing hold counts as renewed, and the holder is never notified.
  test.for(kinds)(
    'the message of a forced release: I8, the holder learns of it by its next renewal ($kind)',
    async ({ client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy({ lease: 1_500 })
      const lost = proxy.rule({ direction: 'down', name: 'lost' }, 'drop')
      const { signal } = await locks.lock(key)
      expect(await client().forceRelease(key)).toBe(true)
      const notified = aborted(signal)
      await within(1_500 / 3 + 300, notified)
      expect(lost.count).toBe(1)
    },
  )
})

describe('every message comes twice', () => {
  // This test fails if `return this.keeper.onGrant(this, grant)` becomes `return false` in src/key/hold.ts: when the
  // message comes again, the client releases the hold in Redis. (For unfair waiters, a second message only costs a
  // request.)
  test.each(kindsAndWays)('I1 I5: there is one grant ($kind, fair: $fair)', async ({ fair, clientBehindProxy }) => {
    const key = freshKey()
    const parties = await Promise.all([clientBehindProxy(patient), clientBehindProxy(patient)])
    const doubled = parties.flatMap(({ proxy }) => allMessages(proxy, 'twice'))
    const history = new Memory()
    await Promise.all(
      parties.map(async ({ locks }, i) => {
        const calls = new RecordedClient(`client ${i}`, locks, history)
        for (let i = 0; i < 40; i++) {
          const lease = await within(3_000, calls.lock(key, { fair }))
          await sleep(3)
          expect(lease.held).toBe(true)
          expect(await calls.release(lease)).toBe(true)
        }
      }),
    )
    expect(doubled.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThan(20)
    expect(violationsIn(history.events)).toEqual([])
    await nothingLeft(plainRedis(), parties[0]!.locks, key)
  })
})

// This test fails if `this.key.granted(this, grant, now)` becomes `if (this.refusal) this.key.granted(this, grant,
// now)` in src/key/waiter.ts: the waiter's grant is given back.
test.for(kinds)(
  'a grant comes before the reply that its waiter is queued: I4, the grant counts at once ($kind)',
  async ({ client, clientBehindProxy }, { key }) => {
    const { locks, proxy } = await clientBehindProxy(patient)
    const holder = client(patient)
    const held = await holder.lock(key)
    const reply = proxy.rule({ direction: 'down', name: 'acquire', times: 1 }, 'hold')
    const wait = locks.lock(key, { fair: true })
    await reply.happened
    await held.release()
    const lease = await within(1_000, wait)
    expect(lease.via).toBe('handoff')
    reply.lift()
    await sleep(50)
    expect(lease.held).toBe(true)
    expect(await holder.inspect(key)).toMatchObject({ fencingToken: lease.fencingToken, holds: 1, waiters: [] })
    expect(await lease.release()).toBe(true)
    await nothingLeft(plainRedis(), locks, key)
  },
)

describe('a grant comes late', () => {
  // This test fails if `not fields[5] and not (holder and holder:sub(HELD_ID_AT, HELD_ID_END) == id)` becomes `outcome
  // == 'left'` in lua/mutex/leave.lua and `elseif s.hold ~= id then` becomes `elseif not s.hold then` in
  // lua/holder.lua: the late grant is given back, and with it another caller's hold. (Only both changes together do
  // harm.) It also fails if `redis.call('HDEL', lock, id)` is removed in lua/permits/release.lua and
  // `redis.call('HDEL', s.lock, id)` is removed in lua/permits.lua: the grant is given back twice, and the second time
  // frees the next holder's permits.
  test.for(kinds)(
    'after its waiter has given up and the next caller holds: I1 I5, that caller keeps the lock ($kind)',
    async ({ client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy(patient)
      const [holder, next] = [client(patient), client(patient)]
      const held = await holder.lock(key)
      const late = proxy.rule({ direction: 'down', name: 'handoff' }, 'hold')
      const controller = new AbortController()
      const { lease: wait } = await park(locks, key, { fair: true, signal: controller.signal })
      const { lease: second } = await park(next, key, { fair: true })
      await held.release()
      await late.happened
      controller.abort(new Error('no longer'))
      expect((await outcomeOf(wait)).error?.message).toBe('no longer')
      const lease = await within(1_000, second)
      late.lift()
      await sleep(100)
      expect(await holder.inspect(key)).toMatchObject({ fencingToken: lease.fencingToken, holds: 1 })
      expect(await holder.tryLock(key)).toBeNull()
      expect(await lease.release()).toBe(true)
      await nothingLeft(plainRedis(), next, key)
    },
  )

  // This test fails if `token > clock` becomes `true` in src/key/waiter.ts: two callers hold.
  test.for(kinds)(
    'after the grant has lapsed, another caller holds, and the waiter has joined again: I1, the client does not believe the message ($kind)',
    async ({ client, clientBehindProxy, nameOf }, { key }) => {
      const { locks, proxy } = await clientBehindProxy({ waiterTtl: 600 })
      const [holder, other] = [client(patient), client(patient)]
      const held = await holder.lock(key)
      const { lease: wait } = await park(locks, key, { fair: true, lease: 700 })
      const [{ id = '' } = {}] = (await holder.inspect(key)).waiters
      const message = proxy.rule({ direction: 'down', name: 'handoff', times: 1 }, 'drop')
      const heartbeat = proxy.rule({ direction: 'up', name: 'tend' }, 'hold')
      await held.release()
      await message.happened
      const { fencingToken } = await holder.inspect(key)
      const lease = await within(3_000, other.lock(key))
      expect(lease.via).toBe('expiry')

      heartbeat.lift()
      await eventually(async () => (await other.inspect(key)).waiters.length === 1)
      // A client rejects a message about a grant for two reasons: too little of the lease is left, or the message has
      // an old token. If the lock were granted after the next two heartbeats, most of the lease would be left. So after
      // them, the client can reject the late message only because of its old token.
      for (let looks = 0; looks < 2; looks++) {
        await proxy.rule({ direction: 'down', name: 'tend', times: 1 }, { delay: 0 }).happened
      }
      await sleep(20)
      let granted = false
      void wait.then(() => {
        granted = true
      })
      // Deliver the late message, whose grant has lapsed.
      await plainRedis().publish(root + id.slice(0, 12), `handoff ${id} ${fencingToken} ${nameOf(key)}`)
      await sleep(100)
      expect(granted).toBe(false)
      expect(lease.held).toBe(true)
      await lease.release()
      const successor = await within(1_000, wait)
      expect(successor.fencingToken).toBeGreaterThan(lease.fencingToken)
      expect(await successor.release()).toBe(true)
    },
  )
})

describe('messages are forged', () => {
  async function scene({ client, nameOf }: Kinds = kinds[0]!) {
    const key = freshKey()
    const locks = client(patient)
    const redis = plainRedis()
    const held = await locks.lock(key)
    const lock = nameOf(key)
    return { key, locks, redis, held, lock, inbox: root + held.id.slice(0, 12) }
  }

  // This test fails if `not fields[5] and not (holder and holder:sub(HELD_ID_AT, HELD_ID_END) == id)` becomes `outcome
  // == 'left'` in lua/mutex/leave.lua and `elseif s.hold ~= id then` becomes `elseif not s.hold then` in
  // lua/holder.lua: a message with an unknown id ends a live hold. (Only both changes together do harm.)
  test.each(kinds)(
    'in the inbox, with an unknown id: I1 I5, nothing is granted, ended or broken ($kind)',
    async kind => {
      const { key, locks, redis, held, lock, inbox } = await scene(kind)
      const { lease: wait } = await park(kind.client(patient), key, { fair: true })
      const guess = inbox.slice(root.length) + 'A'.repeat(16)
      const texts = [
        `handoff ${guess} 1 ${lock}`,
        `expiry ${guess} 99999999999999999999 ${lock}`,
        `handoff ${guess} -5 ${lock}`,
        `handoff ${guess} 1 ${kind.nameOf('another')}`,
        `handoff ${guess},${guess} 1,2 ${lock}`,
        `handoff ${guess},${guess} 1 ${lock}`,
        `handoff ,,, ,,, ${lock}`,
        `handoff ${guess} 1 somebody:else's:key`,
        `handoff ${guess} 1`,
        `lost ${guess} 1 ${lock}`,
        `handoff __proto__ 1 ${lock}`,
        'beat',
        'beat x',
        'handoff',
        '',
        ' ',
        '\0\xff\n',
        'x'.repeat(100_000),
      ]
      for (const text of texts) await redis.publish(inbox, text)
      for (const text of texts) await redis.publish(`${lock}:unlock`, text)
      await sleep(150)
      expect(held.held).toBe(true)
      expect(await locks.inspect(key)).toMatchObject({ fencingToken: held.fencingToken, holds: 1, waiters: [{}] })
      expect(await held.release()).toBe(true)
      expect(await (await within(1_000, wait)).release()).toBe(true)
      await nothingLeft(redis, locks, key)
    },
  )

  // This test fails if `this.#table.addWaiter(waiter)` is removed in src/key/requests.ts: the client does not find the
  // call to which the message belongs, and gives back the grant of this call. It also fails if `if (!waiter.inQueue)
  // return` is removed in src/key/key.ts: the client believes the forged message.
  test.each([
    ['once', { timeout: 0 }],
    ['unfair', {}],
    ['unfair, under a name', { owner: 'somebody' }],
  ])('with the true id of a request under way, %s: I5, its grant is neither believed nor ended', async (_, options) => {
    const key = freshKey()
    const { locks, proxy } = await clientBehindProxy(patient)
    const redis = plainRedis()
    const lock = `lock:{${key}}`
    const reply = proxy.rule({ direction: 'down', name: 'acquire', times: 1 }, 'hold')
    let granted = false
    const wait = locks.lock(key, options).finally(() => {
      granted = true
    })
    await reply.happened
    const id = (await redis.hget(lock, 'holder'))!.split(' ')[2]!
    for (const word of ['handoff', 'expiry'] as const) {
      await redis.publish(root + id.slice(0, 12), `${word} ${id} ${Date.now() * 2_000} ${lock}`)
    }
    await sleep(50)
    expect(granted).toBe(false)
    reply.lift()
    const lease = await within(1_000, wait)
    expect(await locks.inspect(key)).toMatchObject({ fencingToken: lease.fencingToken, holds: 1 })
    expect(await lease.release()).toBe(true)
    await nothingLeft(redis, locks, key)
  })

  // This test fails if `hold.doubt(now)` becomes `hold.keeper.onUnknown(hold)` in src/key/renewals.ts: the client
  // believes the forged message without a check.
  test.each(kinds)(
    'saying that a live hold is lost: I5, the client checks, and the hold continues ($kind)',
    async kind => {
      const { key, locks, redis, held, lock, inbox } = await scene(kind)
      const { signal } = held
      for (let i = 0; i < 20; i++) await redis.publish(inbox, `lost ${held.id} ${held.fencingToken} ${lock}`)
      await sleep(100)
      expect(signal.aborted).toBe(false)
      expect(held.held).toBe(true)
      expect(locks.stats().lost).toBe(0)
      expect(await locks.inspect(key)).toMatchObject({ fencingToken: held.fencingToken })
      expect(await held.release()).toBe(true)
    },
  )

  // This test fails if `this.#table.keys.get(key)?.onUnlocked(this.context.clock.now())` becomes `const state =
  // this.#table.keys.get(key); state?.granted(state.line.first!, { token: 1, deadline: 1e9, via: 'wakeup' }, 0)` in
  // src/kind-client.ts: the client believes the forged message without a check. It also fails if `if
  // (!this.#rounds.asking) this.#tryHead(now)` becomes `this.#tryHead(now)` in src/key/key.ts: each message costs a
  // request.
  test.each(kinds)(
    'saying that the lock is free: I1, no caller takes it, and hundreds of such messages cost few requests ($kind)',
    async kind => {
      const { key, redis, held, lock } = await scene(kind)
      const { locks, proxy } = await kind.clientBehindProxy(patient)
      const { lease: wait } = await parkQuietly(locks, key)
      const asked = proxy.rule({ direction: 'up', name: 'acquire' }, { delay: 0 })
      let granted = false
      void wait.then(() => {
        granted = true
      })
      for (let round = 0; round < 10; round++) {
        const forged = redis.pipeline()
        for (let i = 0; i < 50; i++) forged.publish(`${lock}:unlock`, 'free')
        await forged.exec()
      }
      await sleep(50)
      expect(granted).toBe(false)
      expect(held.held).toBe(true)
      expect(asked.count).toBeGreaterThan(0)
      expect(asked.count).toBeLessThan(250)
      expect(await held.release()).toBe(true)
      expect(await (await within(1_000, wait)).release()).toBe(true)
    },
  )

  // This test fails if `return hold.keeper.onUnknown(hold)` becomes `renewed = this.#clock.now() + question.ms` in
  // src/key/renewals.ts: a missing hold counts as renewed, so the client never notices that its hold is forged. Such a
  // forgery cannot be prevented: `inspect` shows the ids of waiters, so a user with the rights to read the queue *and*
  // to publish can make a waiter believe that it was granted the lock.
  test.each(kinds)(
    'with the true id of a waiter: I8, the forged hold is noticed by its first renewal ($kind)',
    async kind => {
      const { key, locks, redis, held, lock } = await scene(kind)
      const lease = 1_500
      const waiter = kind.client()
      const { lease: wait } = await park(waiter, key, { fair: true, lease, renew: true })
      const [{ id = '' } = {}] = (await locks.inspect(key)).waiters
      await redis.publish(root + id.slice(0, 12), `handoff ${id} ${Date.now() * 2_000} ${lock}`)
      const forged = await within(1_000, wait)
      const notified = aborted(forged.signal)
      await within(lease / 3 + 300, notified)
      expect(held.held).toBe(true)
      expect(await locks.inspect(key)).toMatchObject({ fencingToken: held.fencingToken })
      expect(await forged.release()).toBe(false)
      expect(await held.release()).toBe(true)
    },
  )
})

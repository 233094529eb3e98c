/** Tests lua/mutex/acquire.lua when a queue exists, or when the caller asks to join the queue. */
import { describe, expect } from 'vitest'
import { again, caller, claimOf } from './callers.ts'
import { MEMORY, sharedLock, test, testAlone } from './test-lock.ts'

describe('joining the queue', () => {
  test('I3: puts a waiter at the end, with a ticket larger than all earlier ones', async ({ lock }) => {
    const [ben, cyd, dan] = [caller('ben'), caller('cyd'), caller('dan')]
    let last = await lock.grant(caller('ada'))

    for (const [i, who] of [ben, cyd, dan].entries()) {
      const reply = await lock.acquire(who, { queue: true })
      expect(reply).toMatchObject({ status: 'refused', position: i + 1, label: 'ada' })
      expect(reply.ticket).toBeGreaterThan(last)
      last = reply.ticket!
    }
    expect(await lock.order()).toEqual([ben.id, cyd.id, dan.id])
    expect((await lock.hash())['clock']).toBe(String(last))
  })

  test('I5: again with the same id keeps the place and the ticket', async ({ lock }) => {
    const [ben, cyd] = [caller('ben'), caller('cyd')]
    await lock.grant(caller('ada'))
    const ticket = await lock.enqueue(ben)
    await lock.enqueue(cyd)

    expect(await lock.acquire(ben, { queue: true })).toMatchObject({ status: 'refused', position: 1, ticket })
    expect(await lock.order()).toEqual([ben.id, cyd.id])
  })

  test('I3: again after the expiry has passed is a sign of life: the waiter is not passed over', async ({ lock }) => {
    const [ben, cyd] = [caller('ben', { joinedAgo: 6_000 }), caller('cyd')]
    await lock.given({ holder: caller('ada'), waiters: [ben, cyd] })
    const now = Math.floor((await lock.micros()) / 1000)

    expect(await lock.acquire(ben, { queue: true })).toMatchObject({ status: 'refused', position: 1 })
    expect(await lock.deadline(ben)).toBeGreaterThanOrEqual(now + ben.ttl)
    expect(await lock.redis.pttl(lock.names.deadlines)).toBeGreaterThan(0)
  })

  test('I4: again after the expiry has passed grants the lock, if it is free and the waiter is first', async () => {
    const lock = await sharedLock()
    const [ben, cyd] = [caller('ben', { joinedAgo: 6_000 }), caller('cyd')]
    await lock.given({ waiters: [ben, cyd] })
    await lock.listen(cyd)

    expect(await lock.acquire(ben, { queue: true })).toMatchObject({ status: 'granted' })
    expect(await lock.order()).toEqual([cyd.id])
  })

  test('I4: again grants a free lock even if the client has no subscriber, because a caller is alive', async () => {
    const lock = await sharedLock()
    const gone = caller('gone')
    const [ben, cyd] = [caller('ben', { client: gone.client }), caller('cyd')]
    await lock.given({ waiters: [gone, ben, cyd] })
    await lock.listen(cyd)

    expect(await lock.acquire(ben, { queue: true })).toMatchObject({ status: 'granted' })
    expect(await lock.order()).toEqual([cyd.id])
  })

  test('I3: with a head start overtakes waiters that joined less than that time before, and no others', async () => {
    const lock = await sharedLock()
    const early = caller('early', { joinedAgo: 3_000 })
    const late = caller('late', { joinedAgo: 1_000 })
    await lock.given({ holder: caller('ada'), waiters: [early, late] })
    const urgent = caller('urgent', { headStart: 2_000_000 })
    const before = await lock.micros()

    const reply = await lock.acquire(urgent, { queue: true })
    expect(reply.position).toBe(2)
    expect(reply.ticket).toBeGreaterThanOrEqual(before - 2_000_000)
    expect(await lock.order()).toEqual([early.id, urgent.id, late.id])
  })

  test('keeps every byte of the owner and the label until the grant', async ({ lock }) => {
    const [ada, ben] = [caller('ada'), caller('läbel 2 3\n%s', { owner: 'öwner 1\n4 €' })]
    await lock.grant(ada)
    await lock.enqueue(ben)
    await lock.listen(ben)
    await lock.release(ada)

    expect(await lock.hash()).toMatchObject({ owner: ben.owner, label: ben.name, hold: ben.id })
  })

  test('fails if the key of the queue has another type; nothing is written', async ({ lock }) => {
    await lock.given({ holder: caller('ada') })
    await lock.redis.set(lock.names.queue, 'not a queue')
    const before = await lock.snapshot()

    const attempt = lock.acquire(caller('ben'), { queue: true })
    await expect(attempt).rejects.toMatchObject({ cause: { message: /WRONGTYPE/ } })
    expect(await lock.snapshot()).toEqual(before)
  })

  testAlone('fails if the server is out of memory; nothing is written', async ({ lock }) => {
    await lock.given({ holder: caller('ada') })
    const before = await lock.snapshot()
    await lock.exhaustMemory()

    const attempt = lock.acquire(caller('ben'), { queue: true })
    await expect(attempt).rejects.toMatchObject({ cause: { message: /OOM/ } })
    expect(await lock.snapshot()).toEqual(before)
  })
})

describe.each([
  { state: 'free', taken: 'granted', reason: 'handoff', holder: {} },
  { state: 'lapsed', taken: 'succeeded', reason: 'expiry', holder: { holder: caller('ada'), endsIn: -1 } },
] as const)('an attempt on a $state lock with waiters', ({ taken, reason, holder }) => {
  test('I3: gives the lock to the first live waiter, sends it a message, and is refused', async ({ lock }) => {
    const [ben, cyd] = [caller('ben', { lease: 4_000 }), caller('cyd')]
    await lock.given({ ...holder, waiters: [ben, cyd] })
    const heard = await lock.listen(ben, cyd)

    const reply = await lock.acquire(caller('eve'))
    expect(reply).toMatchObject({ status: 'refused', ttl: 4_000, position: 0, label: 'ben' })
    const { owner, hold, token } = await lock.hash()
    expect([owner, hold]).toEqual([ben.owner, ben.id])
    expect(await heard()).toEqual([lock.grantMessage(reason, ben, Number(token))])
    expect(await lock.order()).toEqual([cyd.id])
  })

  test('I3: joins after the waiters if it asks for the queue', async ({ lock }) => {
    const [ben, cyd, eve] = [caller('ben'), caller('cyd'), caller('eve')]
    await lock.given({ ...holder, waiters: [ben, cyd] })
    await lock.listen(ben)

    expect(await lock.acquire(eve, { queue: true })).toMatchObject({ status: 'refused', position: 2, label: 'ben' })
    expect(await lock.order()).toEqual([cyd.id, eve.id])
  })

  test.for([
    { why: 'expired', joinedAgo: 6_000 },
    { why: 'expired by their last heartbeat', joinedAgo: 60_000, deadlineIn: -1_000 },
  ])('I4: gets the lock if all waiters have $why', async ({ why: _, ...traits }, { lock }) => {
    const [ben, cyd] = [caller('ben', traits), caller('cyd', traits)]
    await lock.given({ ...holder, waiters: [ben, cyd] })
    const heard = await lock.listen(ben, cyd)

    expect(await lock.acquire(caller('eve'))).toMatchObject({ status: taken })
    expect(await heard()).toEqual([])
    expect(await lock.order()).toEqual([])
    expect(await lock.hash()).not.toHaveProperty('queued')
  })

  test('I4: gets the lock if no inbox of a waiter has a subscriber', async ({ lock }) => {
    await lock.given({ ...holder, waiters: [caller('ben'), caller('cyd')] })

    expect(await lock.acquire(caller('eve'))).toMatchObject({ status: taken })
    expect(await lock.order()).toEqual([])
  })

  test('I4: passes over waiters whose inbox has no subscriber', async ({ lock }) => {
    const [ben, cyd, dan] = [caller('ben'), caller('cyd'), caller('dan')]
    await lock.given({ ...holder, waiters: [ben, cyd, dan] })
    await lock.listen(cyd, dan)

    expect(await lock.acquire(caller('eve'))).toMatchObject({ status: 'refused', label: 'cyd' })
    expect(await lock.order()).toEqual([dan.id])
  })

  test('I4: by the first waiter itself gets the lock, without a message', async ({ lock }) => {
    const [ben, cyd] = [caller('ben'), caller('cyd')]
    await lock.given({ ...holder, waiters: [ben, cyd] })
    const heard = await lock.listen(ben, cyd)

    expect(await lock.acquire(ben, { queue: true })).toMatchObject({ status: taken })
    expect(await heard()).toEqual([])
    expect(await lock.order()).toEqual([cyd.id])
  })
})

test('I5: a waiter that gets the lock gets none of the re-entrant holds of the lapsed holder', async ({ lock }) => {
  const [ada, ben] = [caller('ada'), caller('ben')]
  await lock.given({ holder: ada, reentries: [again(ada)], endsIn: -1, waiters: [ben] })
  await lock.listen(ben)
  await lock.acquire(caller('eve'))

  const fields = Object.keys(await lock.hash()).filter(field => field.startsWith('hold'))
  expect(fields).toEqual(['hold'])
})

describe('a queue that is left after its lock was deleted', () => {
  test('I3: is found: its first waiter gets the lock', async ({ lock }) => {
    const [ben, cyd] = [caller('ben'), caller('cyd')]
    await lock.given({ waiters: [ben, cyd] })
    await lock.redis.del(lock.names.lock)
    await lock.listen(ben, cyd)

    expect(await lock.acquire(caller('eve'))).toMatchObject({ status: 'refused', label: 'ben' })
    expect(await lock.order()).toEqual([cyd.id])
  })

  test('I3: is found as a whole: the second waiter follows the first', async ({ lock }) => {
    const [ben, cyd] = [caller('ben'), caller('cyd')]
    await lock.given({ waiters: [ben, cyd] })
    await lock.redis.del(lock.names.lock)
    await lock.listen(ben, cyd)
    await lock.acquire(caller('eve'))
    await lock.release(ben)

    expect(await lock.holder()).toBe(cyd.id)
  })

  test('I2: leads to no token below the tickets of its waiters', async ({ lock }) => {
    const ben = caller('ben')
    await lock.given({ waiters: [ben] })
    const ticket = await lock.redis.zscore(lock.names.queue, claimOf(ben))
    await lock.redis.del(lock.names.lock)

    expect(await lock.grant(caller('eve'))).toBeGreaterThan(Number(ticket))
  })
})

describe('the cost of joining (I9)', () => {
  testAlone('the first waiter: the usual five, and PEXPIREAT for the queue', async ({ lock }) => {
    await lock.grant(caller('ada', { lease: MEMORY }))
    const calls = await lock.callsInside(() => lock.enqueue(caller('ben')))
    expect(calls).toEqual(['HMGET', 'HSET', 'PEXPIREAT', 'TIME', 'ZADD', 'ZRANK'])
  })

  testAlone('further waiters, however many there are: HMGET, TIME, ZADD, HSET, ZRANK', async ({ lock }) => {
    const many = Array.from({ length: 300 }, () => caller('many'))
    await lock.given({ holder: caller('ada'), waiters: many })
    const calls = await lock.callsInside(() => lock.enqueue(caller('ben')))
    expect(calls).toEqual(['HMGET', 'HSET', 'TIME', 'ZADD', 'ZRANK'])
  })
})

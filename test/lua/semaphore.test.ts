/** Tests the effect of each script of lua/permits/ on a semaphore. */
import { describe, expect } from 'vitest'
import { eventually } from '../kit/time.ts'
import { caller } from './callers.ts'
import { another, asker, claimOf, TestSemaphore, test } from './semaphore.ts'

const REQUEST = 'r'.repeat(28)

/** Subscribes to the inboxes of these callers, as waiters do. Returns the messages received. */
async function listening(semaphore: TestSemaphore, ...askers: readonly { client: string }[]): Promise<string[]> {
  const ear = semaphore.redis.duplicate()
  const heard: string[] = []
  ear.on('message', (_, text) => heard.push(text))
  await ear.subscribe(...askers.map(({ client }) => `lock:inbox:${client}`))
  return heard
}

describe('acquire', () => {
  test('I5 repeated, it returns the same grant, and takes no more permits', async ({ semaphore }) => {
    const ada = asker(caller('ada'), '2/3')
    const { token } = await semaphore.acquire(ada)
    expect(await semaphore.acquire(ada)).toMatchObject({ status: 'granted', token, ttl: expect.any(Number) })
    expect(await semaphore.state()).toMatchObject({ taken: 2, holders: [ada.id], deadlines: [ada.id] })
  })

  test('I5 repeated, it keeps its place and its ticket', async ({ semaphore }) => {
    const [ada, ben, cyd] = ['ada', 'ben', 'cyd'].map(name => asker(caller(name), '1/1'))
    await semaphore.acquire(ada!)
    const first = await semaphore.acquire(ben!, 'queue')
    await semaphore.acquire(cyd!, 'queue')
    expect(await semaphore.acquire(ben!, 'queue')).toMatchObject({ position: 1, ticket: first.ticket })
    expect((await semaphore.state()).queue).toEqual([ben!.id, cyd!.id])
  })

  test('I1, I3 the permits of a lapsed hold go to the queue first, even if a newcomer asks', async ({ semaphore }) => {
    const [ada, ben, cyd] = ['ada', 'ben', 'cyd'].map(name => asker(caller(name), '1/1'))
    await semaphore.acquire(ada!)
    await semaphore.acquire(ben!, 'queue')
    const heard = await listening(semaphore, ben!)
    await semaphore.lapse(ada!)
    expect(await semaphore.acquire(cyd!)).toMatchObject({ status: 'refused' })
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben!.id], queue: [] })
    expect(heard.map(text => text.split(' ', 2))).toEqual([['expiry', ben!.id]])
    expect(await semaphore.release(ada!)).toEqual(['ended'])
  })

  test('I8 after the deadlines were lost, nobody holds', async ({ semaphore }) => {
    const [ada, ben] = ['ada', 'ben'].map(name => asker(caller(name), '2/2'))
    const { token } = await semaphore.acquire(ada!)
    await semaphore.redis.del(semaphore.names.deadlines)
    const granted = await semaphore.acquire(ben!)
    expect(granted.token).toBeGreaterThan(token!)
    expect(await semaphore.state()).toMatchObject({ taken: 2, holders: [ben!.id] })
    expect(await semaphore.renew(ada!, token!, 1_000)).toBeNull()
  })

  test('I8 after the lock was lost, old deadlines do not count', async ({ semaphore }) => {
    const [ada, ben, cyd] = ['ada', 'ben', 'cyd'].map(name => asker(caller(name), '1/1'))
    await semaphore.acquire(ada!)
    await semaphore.redis.del(semaphore.names.lock)
    await semaphore.acquire({ ...ben!, lease: 60_000 })
    const { status, ttl } = await semaphore.acquire(cyd!)
    expect(status).toBe('refused')
    expect(ttl).toBeGreaterThan(50_000)
  })

  test('I3 after the lock was lost, its queue is served first', async ({ semaphore }) => {
    const [ada, ben, cyd] = ['ada', 'ben', 'cyd'].map(name => asker(caller(name), '1/1'))
    await semaphore.acquire(ada!)
    await semaphore.acquire(ben!, 'queue')
    await listening(semaphore, ben!)
    await semaphore.redis.del(semaphore.names.lock, semaphore.names.deadlines)
    expect(await semaphore.acquire(cyd!)).toMatchObject({ status: 'refused' })
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben!.id], queue: [] })
  })
})

test('I7 every key expires on its own: holds, queue and clock', async ({ semaphore }) => {
  const ada = asker(caller('ada'), '1/1')
  // In the second pass, the expiry of the lock's key is late enough already, so the acquisition does not move it.
  for (let i = 0; i < 2; i++) {
    await semaphore.acquire(ada)
    for (const key of [semaphore.names.lock, semaphore.names.deadlines]) {
      expect(await semaphore.redis.pttl(key), key).toBeGreaterThan(10_000)
    }
    await semaphore.release(ada)
  }
  await semaphore.acquire(ada)
  await semaphore.acquire(another(ada), 'queue')
  for (const key of Object.values(semaphore.names)) {
    if (await semaphore.redis.exists(key)) expect(await semaphore.redis.pttl(key), key).toBeGreaterThan(0)
  }
})

test('I4 a caller counts as alive even if its client has no subscriber, and gets its place', async ({ semaphore }) => {
  const ada = asker(caller('ada'), '1/2')
  const deaf = asker(caller('deaf'), '1/2')
  const large = { ...another(deaf), wants: '2/2' }
  await semaphore.acquire(ada)
  await semaphore.acquire(large, 'queue')
  await semaphore.redis.zadd(semaphore.names.queue, 1, claimOf({ ...deaf, headStart: Date.now() * 1_000 }))
  expect(await semaphore.acquire(large, 'queue')).toMatchObject({ status: 'refused', position: 1 })
  expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ada.id], queue: [large.id] })
})

test('I4 a caller is granted, even if the grant to another waiter of its client reaches nobody', async () => {
  const semaphore = await TestSemaphore.on()
  const ada = asker(caller('ada'), '2/2')
  const deaf = asker(caller('deaf'), '1/2')
  const ben = asker(caller('ben'), '2/2')
  await semaphore.acquire(ada)
  for (const who of [deaf, ben]) await semaphore.acquire(who, 'queue')
  await listening(semaphore, ben)
  await semaphore.lapse(ada)
  const first = { ...another(deaf), headStart: 60_000_000 }
  expect(await semaphore.acquire(first, 'queue')).toMatchObject({ status: 'succeeded' })
  expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [first.id], queue: [ben.id] })
})

describe('a release', () => {
  test('I4 admits as many waiters as fit, with one message to each client except the releasing one', async () => {
    const semaphore = await TestSemaphore.on()
    const ada = asker(caller('ada'), '4/4')
    const own = { ...another(ada), wants: '1/4' }
    const ben = asker(caller('ben'), '1/4')
    const more = [another(ben), { ...another(ben), wants: '2/4' }]
    await semaphore.acquire(ada)
    for (const who of [ben, own, ...more]) await semaphore.acquire(who, 'queue')
    const heard = await listening(semaphore, ben, ada)
    const [status, id, token, ttl] = await semaphore.release(ada)
    expect([status, id, ttl]).toEqual(['passed', own.id, '10000'])
    await semaphore.redis.ping()
    const [word, ids, tokens] = heard[0]!.split(' ')
    expect([heard.length, word, ids]).toEqual([1, 'handoff', [ben.id, more[0]!.id].join(',')])
    const [first, second] = tokens!.split(',').map(Number)
    expect(Number(token)).toBeGreaterThan(first!)
    expect(second).toBeGreaterThan(Number(token))
    expect(await semaphore.state()).toMatchObject({ taken: 3, queue: [more[1]!.id] })
  })

  test('I4 passes over a client without a subscriber, and serves the next waiter', async ({ semaphore }) => {
    const ada = asker(caller('ada'), '2/2')
    const gone = asker(caller('gone'), '1/2')
    const ben = asker(caller('ben'), '2/2')
    await semaphore.acquire(ada)
    for (const who of [gone, another(gone), ben]) await semaphore.acquire(who, 'queue')
    await listening(semaphore, ben)
    expect(await semaphore.release(ada)).toEqual(['released'])
    expect(await semaphore.state()).toMatchObject({ taken: 2, holders: [ben.id], queue: [] })
  })

  test('I4 leaves the permits for a client without a subscriber free, even if others were served', async () => {
    const semaphore = await TestSemaphore.on()
    const ada = asker(caller('ada'), '2/2')
    const [ben, gone] = ['ben', 'gone'].map(name => asker(caller(name), '1/2'))
    await semaphore.acquire(ada)
    for (const who of [ben!, gone!]) await semaphore.acquire(who, 'queue')
    await listening(semaphore, ben!)
    await semaphore.release(ada)
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben!.id], queue: [] })
  })

  test('I5 of a hold that is gone changes nothing', async ({ semaphore }) => {
    const [ada, ben] = ['ada', 'ben'].map(name => asker(caller(name), '1/2'))
    await semaphore.acquire(ada!)
    await semaphore.acquire(ben!)
    expect((await semaphore.release(ada!))[0]).toBe('released')
    expect(await semaphore.release(ada!)).toEqual(['ended'])
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben!.id] })
  })
})

test('leave: by a waiter, a holder, or neither; when a large first claim leaves, the waiters after it are admitted', async () => {
  const semaphore = await TestSemaphore.on()
  const [ada, ben] = [asker(caller('ada'), '1/2'), asker(caller('ben'), '1/2')]
  const large = asker(caller('large'), '2/2')
  await semaphore.acquire(ada)
  await semaphore.acquire(large, 'queue')
  await semaphore.acquire(ben, 'queue')
  await listening(semaphore, ben)
  expect(await semaphore.leave(large)).toBe('left')
  expect(await semaphore.state()).toMatchObject({ taken: 2, queue: [] })
  expect([await semaphore.leave(ben), await semaphore.leave(ben)]).toEqual(['returned', 'absent'])
  expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ada.id] })
})

test('tend: a missing waiter joins again with its ticket, lapsed permits go to it, and a missed grant is found', async () => {
  const semaphore = await TestSemaphore.on()
  const [ada, ben] = [asker(caller('ada'), '1/1'), asker(caller('ben'), '1/1')]
  await semaphore.acquire(ada)
  const { ticket } = await semaphore.acquire(ben, 'queue')
  await semaphore.redis.del(semaphore.names.queue)
  expect(await semaphore.tend([ben, ticket!])).toEqual([1])
  await semaphore.lapse(ada)
  const found = await semaphore.tend([ben, ticket!])
  expect(found).toEqual([[expect.stringMatching(/^\d{16}$/), 10_000, 'expiry']])
  const again = await semaphore.tend([ben, ticket!])
  expect((again[0] as unknown[])[0]).toBe((found[0] as unknown[])[0])
  expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben.id], queue: [] })
})

// This test fails if `if isTold(s, claim, client, line) and not listed[waiter] then` becomes `if false then` in
// lua/permits/tend.lua: nobody learns of the second grant.
test('tend: I4: of the waiters of one client, only those that are not in the call receive a message', async () => {
  const semaphore = await TestSemaphore.on()
  const ada = asker(caller('ada'), '2/2')
  const ben = asker(caller('ben'), '1/2')
  const other = another(ben)
  await semaphore.acquire(ada)
  const tickets = []
  for (const who of [ben, other]) tickets.push((await semaphore.acquire(who, 'queue')).ticket!)
  const heard = await listening(semaphore, ben)
  await semaphore.lapse(ada)
  expect(await semaphore.tend([ben, tickets[0]!])).toEqual([[expect.any(String), 10_000, 'expiry']])
  expect((await semaphore.state()).holders).toEqual([ben.id, other.id].sort())
  await eventually(() => heard.length > 0)
  expect(heard.map(text => text.split(' ').slice(0, 2))).toEqual([['expiry', other.id]])
})

test('renew: never shortens a lease; reports a lapsed hold as gone, and a later grant to the same id as a later grant', async () => {
  const semaphore = await TestSemaphore.on()
  const ada = asker(caller('ada'), '1/2')
  const { token } = await semaphore.acquire(ada)
  expect(await semaphore.renew(ada, token!, 60_000)).toBe(60_000)
  expect(await semaphore.renew(ada, token!, 1_000)).toBeGreaterThan(55_000)
  expect(await semaphore.renew(ada, token! - 1, 60_000)).toBe(-1)
  await semaphore.lapse(ada)
  expect(await semaphore.renew(ada, token!, 60_000)).toBeNull()
})

describe('force-release', () => {
  test('I5 takes all permits, but only once, and admits waiters', async ({ semaphore }) => {
    const [ada, ben, cyd] = ['ada', 'ben', 'cyd'].map(name => asker(caller(name), '1/2'))
    await semaphore.acquire(ada!)
    await semaphore.acquire(ben!)
    await semaphore.acquire(cyd!, 'queue')
    const heard = await listening(semaphore, ada!, ben!, cyd!)
    expect(await semaphore.forceRelease(REQUEST)).toBe('released')
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [cyd!.id] })
    expect(await semaphore.forceRelease(REQUEST)).toBe('released')
    expect(await semaphore.state()).toMatchObject({ taken: 1 })
    const words = heard.map(text => text.split(' ', 2).join(' ')).sort()
    expect(words).toEqual([`handoff ${cyd!.id}`, `lost ${ada!.id}`, `lost ${ben!.id}`].sort())
  })

  test('takes only the permits of the given holder', async ({ semaphore }) => {
    const [ada, ben] = ['ada', 'ben'].map(name => asker(caller(name), '1/2'))
    await semaphore.acquire(ada!)
    await semaphore.acquire(ben!)
    expect(await semaphore.forceRelease(REQUEST, ada!.id)).toBe('released')
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben!.id] })
    expect(await semaphore.forceRelease('q'.repeat(28), ada!.id)).toBe('free')
  })

  test('takes nothing if the lease of the given holder has lapsed', async ({ semaphore }) => {
    const [ada, ben] = ['ada', 'ben'].map(name => asker(caller(name), '1/2'))
    await semaphore.acquire(ada!)
    await semaphore.acquire(ben!)
    await semaphore.lapse(ada!)
    expect(await semaphore.forceRelease(REQUEST, ada!.id)).toBe('free')
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben!.id] })
  })

  test('continues by further calls if there are more holders than one call may end, and spares later ones', async () => {
    const semaphore = await TestSemaphore.on()
    const first = asker(caller('ada'), '1/600')
    for (const [holders, calls] of [
      [600, 2],
      [250, 1],
    ] as const) {
      const request = `${holders}`.padEnd(28, 'r')
      await Promise.all(Array.from({ length: holders }, () => semaphore.acquire(another(first))))
      expect(await semaphore.forceRelease(request)).toBe('unfinished')
      const late = { ...another(first), lease: first.lease / 2 }
      await semaphore.acquire(late)
      for (let i = 1; i < calls; i++) expect(await semaphore.forceRelease(request)).toBe('unfinished')
      for (const _ of ['last', 'repeated']) expect(await semaphore.forceRelease(request)).toBe('released')
      expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [late.id], deadlines: [late.id] })
      await semaphore.release(late)
    }
  })
})

test('I7 the next call ends lapsed holds, even if enough permits are free without theirs', async ({ semaphore }) => {
  const [dead, next] = [asker(caller('dead'), '1/3'), asker(caller('next'), '1/3')]
  await semaphore.acquire(dead)
  await semaphore.lapse(dead)
  expect((await semaphore.acquire(next)).status).toBe('succeeded')
  expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [next.id], deadlines: [next.id] })
})

test('further calls continue if there are more lapsed holds than one call may end', async ({ semaphore }) => {
  const first = asker(caller('ada'), '1/600')
  const holders = Array.from({ length: 600 }, () => another(first))
  await Promise.all(holders.map(who => semaphore.acquire(who)))
  await Promise.all(holders.map(who => semaphore.lapse(who)))
  const large = asker(caller('large'), '600/600')
  const answers = [await semaphore.acquire(large), await semaphore.acquire(large), await semaphore.acquire(large)]
  expect(answers.map(({ status }) => status)).toEqual(['unfinished', 'unfinished', 'succeeded'])
})

test('the ten-thousandth holder costs the server no more than the second', async () => {
  const semaphore = await TestSemaphore.onOwnServer()
  const first = asker(caller('ada'), '1/20000')
  const calls = async () => {
    await semaphore.redis.config('RESETSTAT')
    const who = another(first)
    await semaphore.acquire(who)
    await semaphore.release(who)
    const stats = await semaphore.redis.info('commandstats')
    const counts = [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name, number]) => `${name} ${number}`)
    return counts.filter(each => !/^(evalsha|eval|info) /.test(each)).sort()
  }
  await calls()
  await semaphore.acquire(another(first))
  const few = await calls()
  await Promise.all(Array.from({ length: 10_000 }, () => semaphore.acquire(another(first))))
  expect(await calls()).toEqual(few)
})

test('reading page by page misses no holder, even if one already read is renewed in the meantime', async () => {
  const semaphore = await TestSemaphore.on()
  const holders = ['ada', 'ben', 'cleo', 'dan'].map(name => asker(caller(name), '1/4'))
  const tokens: number[] = []
  for (const who of holders) tokens.push((await semaphore.acquire(who)).token!)
  const first = await semaphore.holdersAfter('', 2)
  await semaphore.renew(holders.find(({ id }) => id === first.ids[0])!, Math.max(...tokens), 60_000)
  const second = await semaphore.holdersAfter(first.end, 2)
  expect([...new Set([...first.ids, ...second.ids])].sort()).toEqual(holders.map(({ id }) => id).sort())
})

/** lua/permits/: what each script makes of a semaphore. */
import { describe, expect, test } from 'vitest'
import { caller } from './callers.ts'
import { another, asker, claimOf, TestSemaphore } from './semaphore.ts'

const REQUEST = 'r'.repeat(28)

/** They are heard, as those who wait are. */
async function listening(semaphore: TestSemaphore, ...askers: readonly { client: string }[]): Promise<string[]> {
  const ear = semaphore.redis.duplicate()
  const heard: string[] = []
  ear.on('message', (_, text) => heard.push(text))
  await ear.subscribe(...askers.map(({ client }) => `lock:inbox:${client}`))
  return heard
}

describe('acquire', () => {
  test('I5 repeated, it grants the same, and takes nothing more', async () => {
    const semaphore = await TestSemaphore.on()
    const ada = asker(caller('ada'), '2/3')
    const { token } = await semaphore.acquire(ada)
    expect(await semaphore.acquire(ada)).toMatchObject({ status: 'granted', token, ttl: expect.any(Number) })
    expect(await semaphore.state()).toMatchObject({ taken: 2, holders: [ada.id], deadlines: [ada.id] })
  })

  test('I5 repeated, it keeps the place, also after it was granted without one', async () => {
    const semaphore = await TestSemaphore.on()
    const [ada, ben, cyd] = ['ada', 'ben', 'cyd'].map(name => asker(caller(name), '1/1'))
    await semaphore.acquire(ada!)
    const first = await semaphore.acquire(ben!, 'queue')
    await semaphore.acquire(cyd!, 'queue')
    expect(await semaphore.acquire(ben!, 'queue')).toMatchObject({ position: 1, ticket: first.ticket })
    expect((await semaphore.state()).queue).toEqual([ben!.id, cyd!.id])
  })

  test('I1, I3 what a lapsed hold leaves goes to the queue first, whoever asks', async () => {
    const semaphore = await TestSemaphore.on()
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

  test('I8 where the deadlines were lost, nobody holds any more', async () => {
    const semaphore = await TestSemaphore.on()
    const [ada, ben] = ['ada', 'ben'].map(name => asker(caller(name), '2/2'))
    const { token } = await semaphore.acquire(ada!)
    await semaphore.redis.del(semaphore.names.deadlines)
    const granted = await semaphore.acquire(ben!)
    expect(granted.token).toBeGreaterThan(token!)
    expect(await semaphore.state()).toMatchObject({ taken: 2, holders: [ben!.id] })
    expect(await semaphore.renew(ada!, token!, 1_000)).toBeNull()
  })

  test('I8 where the deadlines were lost, nobody holds any more, also where there was something left', async () => {
    const semaphore = await TestSemaphore.on()
    const [ada, ben, cyd] = ['ada', 'ben', 'cyd'].map(name => asker(caller(name), '1/2'))
    const { token } = await semaphore.acquire(ada!)
    await semaphore.redis.del(semaphore.names.deadlines)
    for (const who of [ben!, cyd!]) expect((await semaphore.acquire(who)).token).toBeGreaterThan(token!)
    expect(await semaphore.state()).toMatchObject({ taken: 2, holders: [ben!.id, cyd!.id].sort() })
    expect(await semaphore.renew(ada!, token!, 1_000)).toBeNull()
  })

  test('I8 where the lock was lost, its deadlines are nobody’s', async () => {
    const semaphore = await TestSemaphore.on()
    const [ada, ben, cyd] = ['ada', 'ben', 'cyd'].map(name => asker(caller(name), '1/1'))
    await semaphore.acquire(ada!)
    await semaphore.redis.del(semaphore.names.lock)
    await semaphore.acquire({ ...ben!, lease: 60_000 })
    const { status, ttl } = await semaphore.acquire(cyd!)
    expect(status).toBe('refused')
    expect(ttl).toBeGreaterThan(50_000)
  })

  test('I3 where the lock was lost, its queue is served first', async () => {
    const semaphore = await TestSemaphore.on()
    const [ada, ben, cyd] = ['ada', 'ben', 'cyd'].map(name => asker(caller(name), '1/1'))
    await semaphore.acquire(ada!)
    await semaphore.acquire(ben!, 'queue')
    await listening(semaphore, ben!)
    await semaphore.redis.del(semaphore.names.lock, semaphore.names.deadlines)
    expect(await semaphore.acquire(cyd!)).toMatchObject({ status: 'refused' })
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben!.id], queue: [] })
  })
})

test('I7 everything expires by itself: the holds, the queue, and at last the clock', async () => {
  const semaphore = await TestSemaphore.on()
  const ada = asker(caller('ada'), '1/1')
  // The second time, the life of the lock need not be moved on.
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

test('I4 who asks lives, also where its client is not heard, and is told its place', async () => {
  const semaphore = await TestSemaphore.on()
  const ada = asker(caller('ada'), '1/2')
  const deaf = asker(caller('deaf'), '1/2')
  const large = { ...another(deaf), wants: '2/2' }
  await semaphore.acquire(ada)
  await semaphore.acquire(large, 'queue')
  await semaphore.redis.zadd(semaphore.names.queue, 1, claimOf({ ...deaf, headStart: Date.now() * 1_000 }))
  expect(await semaphore.acquire(large, 'queue')).toMatchObject({ status: 'refused', position: 1 })
  expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ada.id], queue: [large.id] })
})

test('I4 who asks is granted, also where nobody hears of what its client was to have besides', async () => {
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
  test('I4 admits as many as fit, in one message to each client that does not release', async () => {
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

  test('I4 passes over a client that nobody hears, and serves who comes after it', async () => {
    const semaphore = await TestSemaphore.on()
    const ada = asker(caller('ada'), '2/2')
    const gone = asker(caller('gone'), '1/2')
    const ben = asker(caller('ben'), '2/2')
    await semaphore.acquire(ada)
    for (const who of [gone, another(gone), ben]) await semaphore.acquire(who, 'queue')
    await listening(semaphore, ben)
    expect(await semaphore.release(ada)).toEqual(['released', '0'])
    expect(await semaphore.state()).toMatchObject({ taken: 2, holders: [ben.id], queue: [] })
  })

  test('I4 what a client was to have that nobody hears is free, also where others have been served', async () => {
    const semaphore = await TestSemaphore.on()
    const ada = asker(caller('ada'), '2/2')
    const [ben, gone] = ['ben', 'gone'].map(name => asker(caller(name), '1/2'))
    await semaphore.acquire(ada)
    for (const who of [ben!, gone!]) await semaphore.acquire(who, 'queue')
    await listening(semaphore, ben!)
    await semaphore.release(ada)
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben!.id], queue: [] })
  })

  test('I5 of a hold that is gone changes nothing', async () => {
    const semaphore = await TestSemaphore.on()
    const [ada, ben] = ['ada', 'ben'].map(name => asker(caller(name), '1/2'))
    await semaphore.acquire(ada!)
    await semaphore.acquire(ben!)
    expect((await semaphore.release(ada!))[0]).toBe('released')
    expect(await semaphore.release(ada!)).toEqual(['ended'])
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben!.id] })
  })
})

test('leave: a queued one, a holder, nobody; and those behind a large head are admitted', async () => {
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

test('tend: a missing waiter joins again with its ticket, a missed grant is found, and what has lapsed is given on', async () => {
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

test('renew: never shorter; a lapsed hold is gone, and one that was granted anew is told apart', async () => {
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
  test('I5 takes all permits, once, and lets others in', async () => {
    const semaphore = await TestSemaphore.on()
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

  test('takes those of one holder only', async () => {
    const semaphore = await TestSemaphore.on()
    const [ada, ben] = ['ada', 'ben'].map(name => asker(caller(name), '1/2'))
    await semaphore.acquire(ada!)
    await semaphore.acquire(ben!)
    expect(await semaphore.forceRelease(REQUEST, ada!.id)).toBe('released')
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben!.id] })
    expect(await semaphore.forceRelease('q'.repeat(28), ada!.id)).toBe('free')
  })

  test('of a holder whose lease is over, nobody loses anything', async () => {
    const semaphore = await TestSemaphore.on()
    const [ada, ben] = ['ada', 'ben'].map(name => asker(caller(name), '1/2'))
    await semaphore.acquire(ada!)
    await semaphore.acquire(ben!)
    await semaphore.lapse(ada!)
    expect(await semaphore.forceRelease(REQUEST, ada!.id)).toBe('free')
    expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [ben!.id] })
  })

  test('of more holders than one call may end goes on until none is left', async () => {
    const semaphore = await TestSemaphore.on()
    const first = asker(caller('ada'), '1/600')
    await Promise.all(Array.from({ length: 600 }, () => semaphore.acquire(another(first))))
    const answers = [1, 2, 3].map(() => semaphore.forceRelease(REQUEST))
    expect(await Promise.all(answers)).toEqual(['unfinished', 'unfinished', 'released'])
    expect(await semaphore.state()).toMatchObject({ taken: 0, holders: [], deadlines: [] })
  })
})

test('more lapsed holds than one call may end: who asks goes on', async () => {
  const semaphore = await TestSemaphore.on()
  const first = asker(caller('ada'), '1/600')
  const holders = Array.from({ length: 600 }, () => another(first))
  await Promise.all(holders.map(who => semaphore.acquire(who)))
  await Promise.all(holders.map(who => semaphore.lapse(who)))
  const large = asker(caller('large'), '600/600')
  const answers = [await semaphore.acquire(large), await semaphore.acquire(large), await semaphore.acquire(large)]
  expect(answers.map(({ status }) => status)).toEqual(['unfinished', 'unfinished', 'succeeded'])
})

test('the server has the same to do for the first holder and for the ten thousandth', async () => {
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

test('a look page by page misses no holder, though one that was read is renewed meanwhile', async () => {
  const semaphore = await TestSemaphore.on()
  const holders = ['ada', 'ben', 'cleo', 'dan'].map(name => asker(caller(name), '1/4'))
  const tokens: number[] = []
  for (const who of holders) tokens.push((await semaphore.acquire(who)).token!)
  const first = await semaphore.holdersAfter('', 2)
  await semaphore.renew(holders.find(({ id }) => id === first.ids[0])!, Math.max(...tokens), 60_000)
  const second = await semaphore.holdersAfter(first.end, 2)
  expect([...new Set([...first.ids, ...second.ids])].sort()).toEqual(holders.map(({ id }) => id).sort())
})

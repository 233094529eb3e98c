/** Tests lua/mutex/inspect.lua, which reads the whole state of a lock and writes nothing. */
import { describe, expect } from 'vitest'
import { again, caller, claimOf } from './callers.ts'
import { lockOnOwnServer, sharedLock, type TestLock, test } from './test-lock.ts'

/** Reads at most `most` waiters of the queue, beginning after `entry` or at the head of the queue. */
async function inspect(lock: TestLock, most: number | undefined, entry?: { ticket: string; behind: string }) {
  const { status, values } = await lock.scripts.run('inspect', lock.keys, [most, entry?.ticket, entry?.behind])
  const [micros, holder, holds, queue, deadlines] = values as [string, string | null, number | null, string[], string[]]
  return { status, micros: Number(micros), holder, holds, queue, deadlines }
}

const ada = caller('ada')
const ben = caller('ben')
const cyd = caller('cyd', { deadlineIn: 3_000 })

test("shows the holder, the queue with its tickets and deadlines, and the server's time", async ({ lock }) => {
  await lock.given({ holder: ada, reentries: [again(ada)], waiters: [ben, cyd] })
  const before = await lock.micros()

  const state = await inspect(lock, 10)
  const holder = await lock.redis.hget(lock.names.lock, 'holder')
  const tickets = await lock.redis.zrange(lock.names.queue, 0, '-1', 'WITHSCORES')
  expect(state.micros).toBeGreaterThanOrEqual(before)
  expect(state).toMatchObject({ holder, holds: 2 })
  expect(state.queue).toEqual(tickets)
  expect(state.queue.filter((_, i) => i % 2 === 0)).toEqual([claimOf(ben), claimOf(cyd)])
  expect(state.deadlines).toEqual([cyd.id, String(await lock.deadline(cyd))])
})

test('without the queue: shows the holder alone', async ({ lock }) => {
  await lock.given({ holder: ada, waiters: [ben, cyd] })

  const state = await inspect(lock, undefined)
  expect(state.holder).toContain(claimOf(ada))
  expect(state).toMatchObject({ holds: null, queue: [], deadlines: [] })
})

test('shows nothing for a lock that does not exist', async () => {
  const state = await inspect(await sharedLock(), 10)
  expect(state).toMatchObject({ status: 'state', holder: null, holds: null, queue: [], deadlines: [] })
})

describe('a long queue', () => {
  const dee = caller('dee')
  const entriesOf = (queue: string[]) => queue.filter((_, i) => i % 2 === 0)

  test('is shown page by page; each page begins after the last waiter of the previous one', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: [ben, cyd, dee] })
    const { queue } = await inspect(lock, 2)
    expect(entriesOf(queue)).toEqual([claimOf(ben), claimOf(cyd)])

    const rest = await inspect(lock, 2, { ticket: queue[3]!, behind: queue[2]! })
    expect(entriesOf(rest.queue)).toEqual([claimOf(dee)])
  })
})

describe.each([10, undefined])('I5: writes nothing (waiters: %s)', most => {
  test.for([
    { what: 'a lock that does not exist', given: undefined },
    { what: 'a held lock with waiters', given: { holder: ada, waiters: [ben, cyd] } },
    {
      what: 'a lapsed lock with expired waiters',
      given: { holder: ada, endsIn: -1, waiters: [{ ...ben, joinedAgo: 6e3 }] },
    },
  ])('on $what', async ({ given }, { lock }) => {
    if (given) await lock.given(given)
    const before = await lock.snapshot()
    await inspect(lock, most)

    expect(await lock.snapshot()).toEqual(before)
  })
})

test.each([
  { most: 10, calls: ['HMGET', 'TIME', 'ZRANGE', 'ZSCORE'] },
  { most: undefined, calls: ['HMGET', 'TIME'] },
])('I9: costs $calls', async ({ most, calls }) => {
  const lock = await lockOnOwnServer()
  await lock.given({ holder: ada, waiters: [ben] })
  expect(await lock.callsInside(() => inspect(lock, most))).toEqual(calls)
})

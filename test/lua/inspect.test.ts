/** lua/inspect.lua: the whole state of a lock, and nothing written. */
import { describe, expect, test } from 'vitest'
import { again, caller, claimOf } from './callers.ts'
import { lockOnOwnServer, sharedLock, type TestLock } from './test-lock.ts'

/** `queued`: with the queue. */
async function inspect(lock: TestLock, queued: boolean) {
  const { status, values } = await lock.scripts.run('inspect', lock.names, { queued: queued ? '1' : undefined })
  const [micros, holder, holds, queue, deadlines] = values as [string, string | null, string | null, string[], string[]]
  return { status, micros: Number(micros), holder, holds, queue, deadlines }
}

const ada = caller('ada')
const ben = caller('ben')
const cyd = caller('cyd', { deadlineIn: 3_000 })

test("shows the holder, the queue with its tickets and deadlines, and the server's time", async () => {
  const lock = await sharedLock()
  await lock.given({ holder: ada, reentries: [again(ada)], waiters: [ben, cyd] })
  const before = await lock.micros()

  const state = await inspect(lock, true)
  const { token, until } = await lock.hash()
  const tickets = await lock.redis.zrange(lock.names.queue, 0, '-1', 'WITHSCORES')
  expect(state.micros).toBeGreaterThanOrEqual(before)
  expect(state).toMatchObject({ holder: `${token} ${until} ${claimOf(ada)}`, holds: '2' })
  expect(state.queue).toEqual(tickets)
  expect(state.queue.filter((_, i) => i % 2 === 0)).toEqual([claimOf(ben), claimOf(cyd)])
  expect(state.deadlines).toEqual([cyd.id, String(await lock.deadline(cyd))])
})

test('without the queue: shows the holder alone', async () => {
  const lock = await sharedLock()
  await lock.given({ holder: ada, waiters: [ben, cyd] })

  const state = await inspect(lock, false)
  expect(state.holder).toContain(claimOf(ada))
  expect(state).toMatchObject({ holds: null, queue: [], deadlines: [] })
})

test('shows nothing of a lock that nobody knows', async () => {
  const state = await inspect(await sharedLock(), true)
  expect(state).toMatchObject({ status: 'state', holder: null, holds: null, queue: [], deadlines: [] })
})

describe.each([true, false])('I5: writes nothing (with the queue: %s)', queued => {
  test.each([
    { what: 'a lock that nobody knows', given: undefined },
    { what: 'a held lock with waiters', given: { holder: ada, waiters: [ben, cyd] } },
    {
      what: 'a lapsed lock with expired waiters',
      given: { holder: ada, endsIn: -1, waiters: [{ ...ben, joinedAgo: 6e3 }] },
    },
  ])('on $what', async ({ given }) => {
    const lock = await sharedLock()
    if (given) await lock.given(given)
    const before = await lock.snapshot()
    await inspect(lock, queued)

    expect(await lock.snapshot()).toEqual(before)
  })
})

test.each([
  { queued: true, calls: ['HMGET', 'TIME', 'ZRANGE', 'ZRANGE'] },
  { queued: false, calls: ['HMGET', 'TIME'] },
])('I9: costs $calls', async ({ queued, calls }) => {
  const lock = await lockOnOwnServer()
  await lock.given({ holder: ada, waiters: [ben] })
  expect(await lock.callsInside(() => inspect(lock, queued))).toEqual(calls)
})

/**
 * Tests several processes that share one lock (I1, I2, I3). No two of them may hold the lock at the same time. Each
 * process records its holds. The test searches these records for holds that overlap, so it does not rely on the lock.
 */
import { expect, test } from 'vitest'
import { Crew } from '../../kit/crew.ts'
import type { Orders } from '../../kit/crew-worker.ts'
import { client, keysWith, plainRedis } from '../../kit/redis.ts'

const rounds = 25

/** Two processes with one caller, which sends each request itself, and two whose callers can hand the lock on. */
const callers = [1, 1, 4, 4]

test.each<[string, Partial<Orders>[]]>([
  ['fair', Array(4).fill({ fair: 'always' })],
  ['unfair', Array(4).fill({ fair: 'never' })],
  ['fair and unfair', [{ fair: 'always' }, { fair: 'never' }, { fair: 'always' }, { fair: 'never' }]],
  ['alternating', Array(4).fill({ fair: 'alternately' })],
])('%s callers of one key in four processes exclude each other', async (_, orders) => {
  const crew = await Crew.hire(...orders.map((order, i) => ({ ...order, rounds, callers: callers[i]! })))
  for (const worker of crew.workers) worker.go()
  await Promise.all(crew.workers.map(worker => worker.done()))

  expect(await crew.violations()).toEqual([])
  expect(await crew.written()).toHaveLength(rounds * callers.reduce((sum, count) => sum + count))
  expect((await crew.history()).filter(({ kind }) => kind === 'lost')).toEqual([])
  expect(await client().inspect(crew.key)).toMatchObject({ locked: false, waiters: [] })
  expect(await keysWith(plainRedis(), `${crew.key}}:q`)).toEqual([])
})

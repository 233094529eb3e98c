/**
 * Tests several processes that share one lock (I1, I2, I3). No two of them may hold the lock at the same time. Each
 * process records its holds. The test searches these records for holds that overlap, so it does not rely on the lock.
 */
import { describe, expect, test } from 'vitest'
import { Crew } from '../../kit/crew.ts'
import type { Orders } from '../../kit/crew-worker.ts'
import { client, keysWith, plainRedis } from '../../kit/redis.ts'

const rounds = 60

describe.each<[string, Partial<Orders>[]]>([
  ['fair', Array(4).fill({ fair: 'always' })],
  ['unfair', Array(4).fill({ fair: 'never' })],
  ['fair and unfair', [{ fair: 'always' }, { fair: 'never' }, { fair: 'always' }, { fair: 'never' }]],
  ['alternating', Array(4).fill({ fair: 'alternately' })],
])('%s callers of one key in four processes', (_, orders) => {
  test.each([1, 4])('exclude each other, with %i callers in each', { timeout: 60_000 }, async callers => {
    const crew = await Crew.hire(...orders.map(order => ({ ...order, rounds, callers })))
    for (const worker of crew.workers) worker.go()
    await Promise.all(crew.workers.map(worker => worker.done()))

    expect(await crew.violations()).toEqual([])
    expect(await crew.written()).toHaveLength(orders.length * rounds * callers)
    expect((await crew.history()).filter(({ kind }) => kind === 'lost')).toEqual([])
    expect(await client().inspect(crew.key)).toMatchObject({ locked: false, waiters: [] })
    expect(await keysWith(plainRedis(), `${crew.key}}:q`)).toEqual([])
  })
})

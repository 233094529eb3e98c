/** Processes that work under one lock are never inside together, says a witness that knows nothing of the lock (I1, I2). */
import { describe, expect, test } from 'vitest'
import { Crew, reportOf } from '../../kit/processes/crew.ts'
import type { Orders } from '../../kit/processes/worker.ts'
import { client, keysWith, plainRedis } from '../../kit/redis.ts'

const rounds = 60

describe.each<[string, Partial<Orders>[]]>([
  ['fair', Array(4).fill({ fair: 'always' })],
  ['unfair', Array(4).fill({ fair: 'never' })],
  ['fair and unfair', [{ fair: 'always' }, { fair: 'never' }, { fair: 'always' }, { fair: 'never' }]],
  ['alternating', Array(4).fill({ fair: 'alternately' })],
])('%s callers of one key in four processes', (_, orders) => {
  test.each([1, 4])('exclude each other, with %i callers in each', { timeout: 60_000 }, async callers => {
    const crew = await Crew.assemble()
    const workers = await crew.hire(...orders.map(order => ({ ...order, rounds, callers, file: crew.file })))
    for (const worker of workers) worker.go()

    const sections = orders.length * rounds * callers
    expect(await reportOf(workers)).toEqual({ sections, overlaps: 0, refused: 0, lost: 0 })
    expect(await crew.register.read()).toBe(String(sections))
    expect(await crew.expectIncreasingTokens()).toHaveLength(sections)
    expect(await client().inspect(crew.key)).toMatchObject({ locked: false, waiters: [] })
    expect(await keysWith(plainRedis(), `${crew.key}}:queue`)).toEqual([])
  })
})

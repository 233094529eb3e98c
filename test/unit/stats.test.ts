/**
 * Tests how a client records the times that it measures. test/contract/stats.test.ts tests the statistics for users.
 */
import { expect, test } from 'vitest'
import { Stats } from '../../src/observe/stats.ts'

test.each([1, 63, 64, 65, 200])('every time counts, including the latest: %i of them', count => {
  const stats = new Stats()
  for (let i = 1; i <= count; i++) {
    stats.acquired('immediate', i)
    stats.ended('released', 2 * i)
    expect(stats.snapshot(0, 0).hold.count).toBe(i)
  }
  const { wait, hold, handoff } = stats.snapshot(0, 0)
  expect(wait).toMatchObject({ count, min: 1 })
  expect(wait.max).toBeCloseTo(count, 0)
  expect(wait.mean).toBeCloseTo((count + 1) / 2, 0)
  expect(hold.max).toBeCloseTo(2 * count, 0)
  expect(handoff.count).toBe(0)
})

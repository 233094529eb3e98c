/** Tests how long a run of local hand-offs may last, and which tokens it uses. */
import { describe, expect, test } from 'vitest'
import { Run } from '../../src/local/run.ts'

const claim = { key: 'key', id: 'hold', owner: 'hold', label: '', lease: 30_000, headStart: 0 }

function begin({ block = 1_000, now = 0, alone = false } = {}): Run {
  return new Run(claim, { granted: true, token: 500, deadline: 30_000, via: 'wakeup', block }, now, alone)
}

test('I2 tokens are those after the grant’s own, each issued once, in order', () => {
  const run = begin()
  const issued = Array.from({ length: 1_000 }, () => run.issue())
  expect(issued).toEqual(Array.from({ length: 1_000 }, (_, i) => 501 + i))
})

test('I2 the run knows the last token that it issued, so that the rest of the block can be returned', () => {
  const run = begin()
  expect(run.last).toBeUndefined()
  for (let i = 0; i < 3; i++) run.issue()
  expect(run.last).toBe(503)
})

describe('I4 a run is over', () => {
  test('4 ms after its start, and `left` is the time until then', () => {
    const run = begin({ now: 100 })
    expect([100, 101.5, 103.9].map(now => Math.round(run.left(now) * 10))).toEqual([40, 25, 1])
    expect([104, 104.1, 5_000].map(now => run.left(now))).toEqual([0, 0, 0])
  })

  test('25 ms after its start, if no other client is known to wait', () => {
    const run = begin({ now: 100, alone: true })
    expect([run.left(100), run.left(124), run.left(125), run.left(5_000)]).toEqual([25, 1, 0, 0])
  })

  test('with the last token of its block', () => {
    const run = begin({ block: 3 })
    for (let i = 0; i < 3; i++) {
      expect(run.left(0)).toBeGreaterThan(0)
      run.issue()
    }
    expect(run.left(0)).toBe(0)
  })

  test('at once if no tokens were reserved', () => {
    const grant = { granted: true, token: 500, deadline: 30_000, via: 'wakeup' } as const
    expect(new Run(claim, grant, 0, true).left(0)).toBe(0)
  })

  test('when a fair waiter is known to be queued', () => {
    const run = begin()
    run.queued = true
    expect(run.left(0)).toBe(0)
  })

  test('when it was ended', () => {
    const run = begin()
    run.end()
    expect(run.left(0)).toBe(0)
  })
})

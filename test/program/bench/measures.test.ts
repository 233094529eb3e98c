import { describe, expect, test } from 'vitest'
import {
  differences,
  distribution,
  fairnessOverTime,
  handoffs,
  jain,
  longestOfMixed,
  longestOfPhases,
  ordinary,
  overtaking,
  quantile,
  shares,
} from '../../../benchmarks/harness/measures.ts'
import { type Crowd, merge, type Samples } from '../../../benchmarks/harness/samples.ts'

const always = { from: 0, to: 1_000 }

type Row = [process: number, waiter: number, asked: number, acquired: number, released: number, done?: number]

/** Makes samples from rows, which may be in any order. By default, each process has two waiters. */
function samplesOf(rows: Row[], { waiters = 2, keys = 1, ...sharing }: Partial<Crowd> = {}): Samples {
  const parts = rows.map(([process, waiter, asked, acquired, released, done = released + 1]) => ({
    process,
    records: Float64Array.of(waiter, asked, acquired, released, done),
  }))
  return merge(parts, { waiters, keys, ...sharing })
}

describe('hand-offs', () => {
  test('are from the call of release to the next return, also in another process', () => {
    const samples = samplesOf([
      [1, 0, 5, 20.5, 30],
      [0, 0, 1, 10, 20],
      [1, 1, 6, 30.25, 40],
    ])
    const { all, cross, overlaps } = handoffs(samples, always)
    expect([...all]).toEqual([500, 250])
    expect([...cross]).toEqual([500])
    expect(overlaps).toBe(0)
  })

  test('count only if the next owner had asked before the release', () => {
    const samples = samplesOf([
      [0, 0, 1, 10, 20],
      [1, 0, 21, 22, 30],
    ])
    expect([...handoffs(samples, always).all]).toEqual([])
  })

  test('count only within the window, and only on one key', () => {
    const samples = samplesOf(
      [
        [0, 0, 1, 10, 20],
        // Waiter 0 uses the first key, and waiter 1 uses the second key. So the hold in the first row is not handed off
        // to the waiter in the second row.
        [0, 1, 2, 21, 30],
        [0, 0, 3, 31, 40],
        [0, 0, 4, 45, 50],
      ].map(row => row as Row),
      { keys: 2 },
    )
    expect([...handoffs(samples, { from: 0, to: 44 }).all]).toEqual([11_000])
  })

  test('report how many went back to the releaser', () => {
    const samples = samplesOf([
      [0, 0, 1, 10, 20],
      [0, 0, 20.1, 20.2, 30],
      [0, 0, 30.1, 30.2, 40],
      [1, 0, 5, 41, 50],
    ])
    expect(handoffs(samples, always).backToReleaser).toBeCloseTo(2 / 3)
  })
})

// The second number of each row is the number of a waiter. Waiters with even numbers are fair.
test('of a mixed crowd, report the longest wait of each half over all processes', () => {
  const samples = samplesOf(
    [
      [0, 0, 1, 10, 20],
      [1, 2, 2, 21, 30],
      [0, 1, 3, 33, 40],
      [1, 3, 4, 41, 50],
      [0, 2, 40, 51, 60],
    ],
    { waiters: 4 },
  )
  expect(longestOfMixed(samples, 4, 0)).toEqual({ waitMaxFair: 19, waitMaxUnfair: 37 })
  // The last argument is the time at which all waiters are queued. If a waiter asked before that time, only its wait
  // after that time counts.
  expect(longestOfMixed(samples, 4, 39)).toEqual({ waitMaxFair: 11, waitMaxUnfair: 2 })
  const always = { from: 0, to: 100 }
  expect([0, 39].map(openAt => ordinary(samples, 8, always, openAt).waitMax)).toEqual([37, 11])
})

test('a cycle longer than the window counts in its p99, and one from before it does not', () => {
  const samples = samplesOf([
    [0, 0, 1, 2, 10, 90],
    [0, 0, 100, 350, 360, 400],
  ])
  expect(ordinary(samples, 1, { from: 200, to: 300 })).toMatchObject({ acquisitions: 0, cycleP99: 300_000 })
  expect(ordinary(samples, 1, { from: 410, to: 500 })).not.toHaveProperty('cycleP99')
})

describe('overlaps', () => {
  test('are holds that began before an earlier one had ended', () => {
    const samples = samplesOf([
      [0, 0, 1, 10, 20],
      [1, 0, 2, 19, 25],
    ])
    const found = handoffs(samples, always)
    expect(found.overlaps).toBe(1)
    expect([...found.all]).toEqual([])
  })

  test('are found after a short hold, and outside the window', () => {
    const samples = samplesOf([
      [0, 0, 1, 10, 90],
      [0, 1, 2, 20, 30],
      [1, 0, 3, 40, 50],
    ])
    expect(handoffs(samples, { from: 0, to: 5 }).overlaps).toBe(2)
  })

  test('do not count between different keys', () => {
    const rows: Row[] = [
      [0, 0, 1, 10, 90],
      [0, 1, 2, 20, 30],
    ]
    expect(handoffs(samplesOf(rows, { keys: 2 }), always).overlaps).toBe(0)
    expect(handoffs(samplesOf(rows, { keys: 1 }), always).overlaps).toBe(1)
  })
})

describe('of a semaphore', () => {
  const two = { lock: 'semaphore', permits: 2 } as const

  test('a hand-off is from the release of the permit that was taken; the permit released first is taken first', () => {
    const samples = samplesOf(
      [
        [0, 0, 1, 10, 20],
        [0, 1, 1, 11, 22],
        [1, 0, 2, 23, 30], // this waiter gets the permit of the first row
        [1, 1, 3, 24, 31], // this waiter gets the permit of the second row
        [0, 0, 21, 32, 40], // this waiter gets the permit of the third row
        [0, 1, 33, 34, 41], // this waiter asks after the release in the fourth row, so this is no hand-off
      ],
      two,
    )
    const { all, cross, overlaps, backToReleaser } = handoffs(samples, always)
    expect([...all]).toEqual([3_000, 2_000, 2_000])
    expect([...cross]).toEqual([3_000, 2_000, 2_000])
    expect([overlaps, backToReleaser]).toEqual([0, 0])
  })

  test('an overlap is one holder more than there are permits', () => {
    const rows: Row[] = [
      [0, 0, 1, 10, 20],
      [0, 1, 1, 11, 50],
      [1, 0, 2, 19, 30], // this hold begins while both permits are taken
      [1, 1, 2, 25, 31], // this hold begins while both permits are taken
      [0, 0, 26, 32, 40],
    ]
    expect(handoffs(samplesOf(rows, two), always).overlaps).toBe(2)
    expect(handoffs(samplesOf(rows, { ...two, permits: 3 }), always).overlaps).toBe(0)
  })

  test('one permit is like a mutex', () => {
    const rows: Row[] = [
      [1, 0, 5, 20.5, 30],
      [0, 0, 1, 10, 20],
      [1, 1, 6, 30.25, 40],
      [0, 1, 6, 39, 41],
    ]
    expect(handoffs(samplesOf(rows, { ...two, permits: 1 }), always)).toEqual(handoffs(samplesOf(rows), always))
  })
})

describe('of a read-write lock', () => {
  /** Each process has three waiters. The first of them is a writer, the others are readers. */
  const lock = { lock: 'readWrite', waiters: 3, writerEvery: 3 } as const

  test('readers are let in by the last writer, a writer by the last of all holders', () => {
    const samples = samplesOf(
      [
        [0, 0, 1, 10, 20], // a writer
        [0, 1, 2, 21, 40],
        [1, 1, 2, 22, 30],
        [1, 0, 3, 43, 50], // a writer
        [0, 2, 25, 54, 60],
      ],
      lock,
    )
    const { all, overlaps } = handoffs(samples, always)
    expect([...all]).toEqual([1_000, 2_000, 3_000, 4_000])
    expect(overlaps).toBe(0)
    expect(longestOfPhases(samples, 0)).toEqual({ waitMaxReaders: 29, waitMaxWriters: 40 })
  })

  test('an overlap is a writer beside any other holder', () => {
    const rows: Row[] = [
      [0, 1, 1, 10, 30],
      [1, 1, 1, 11, 20],
      [0, 0, 2, 25, 40], // a writer that begins while the first reader still reads
      [1, 2, 3, 35, 50], // a reader that begins while the writer still writes
      [1, 1, 3, 41, 42],
    ]
    expect(handoffs(samplesOf(rows, lock), always).overlaps).toBe(2)
  })
})

describe('overtaking', () => {
  test('is zero in order of asking', () => {
    const samples = samplesOf([1, 2, 3, 4].map(at => [0, 0, at, at * 10, at * 10 + 5] as Row))
    expect(overtaking(samples)).toEqual({ most: 0, share: 0 })
  })

  test('counts later requests that came first, for the waiter with the most of them', () => {
    const samples = samplesOf([
      [0, 0, 1, 50, 51], // overtaken by all three other waiters
      [0, 1, 2, 10, 11],
      [1, 0, 4, 20, 21],
      [1, 1, 3, 30, 31], // overtaken by one other waiter
    ])
    expect(overtaking(samples)).toEqual({ most: 3, share: 4 / 6 })
  })

  test('agrees with counting all pairs', () => {
    const asked = Array.from({ length: 300 }, (_, i) => (i * 7_919) % 307)
    const samples = samplesOf(asked.map((at, i) => [0, 0, at, 1_000 + i, 1_000 + i] as Row))
    const by = asked.map((at, i) => asked.slice(0, i).filter(earlier => earlier > at).length)
    const pairs = (300 * 299) / 2
    expect(overtaking(samples)).toEqual({ most: Math.max(...by), share: by.reduce((a, b) => a + b) / pairs })
  })
})

describe('fairness', () => {
  test('a starved waiter shows in the shares and in the index', () => {
    const samples = samplesOf([
      [0, 0, 1, 10, 11],
      [0, 0, 12, 13, 14],
      [1, 1, 1, 20, 21],
      [1, 1, 22, 23, 24],
    ])
    const counts = shares(samples, 4, always)
    expect([...counts]).toEqual([2, 0, 0, 2])
    expect(jain(counts)).toBe(0.5)
    expect(jain(Int32Array.of(3, 3, 3))).toBe(1)
  })

  test('fairness over time is one index per tenth', () => {
    const samples = samplesOf([
      [0, 0, 1, 5, 6],
      [0, 1, 1, 8, 9],
      [0, 0, 1, 15, 16],
    ])
    expect(fairnessOverTime(samples, 2, { from: 0, to: 100 })).toEqual([1, 0.5, 0, 0, 0, 0, 0, 0, 0, 0])
  })
})

test('a release that did not return removes the cycle, not the hold', () => {
  const samples = samplesOf([
    [0, 0, 1, 10, 20, Number.NaN],
    [0, 1, 2, 21, 30, 32],
  ])
  expect([...differences(samples, samples.done, samples.asked, always)]).toEqual([30])
  expect(ordinary(samples, 4, always)).toMatchObject({ acquisitions: 2, cycleP50: 30_000, waitMax: 19, overlaps: 0 })
})

test('a figure that cannot be taken is absent', () => {
  const figures = ordinary(samplesOf([[0, 0, 1, 10, 20]]), 4, always)
  expect(figures).not.toHaveProperty('handoffP50')
  expect(figures).not.toHaveProperty('backToReleaser')
})

test('quantiles use the nearest rank', () => {
  const values = Float64Array.from({ length: 100 }, (_, i) => 100 - i)
  expect([0, 0.5, 0.99, 1].map(share => quantile(values, share))).toEqual([1, 51, 100, 100])
})

test('the distribution has each value in its bucket', () => {
  const { low, step, counts } = distribution(Float64Array.of(0.2, 1, 100, 105, 1e12))
  expect(counts.reduce((a, b) => a + b)).toBe(5)
  expect(counts[0]).toBe(2)
  const bucket = Math.floor(Math.log(105 / low) / Math.log(step))
  expect(counts[bucket]).toBe(2)
})

import { describe, expect, test } from 'vitest'
import {
  differences,
  handoffs,
  jain,
  longestOfPhases,
  ofGroups,
  ordinary,
  overtaking,
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

test('of groups: the longest wait but for the largest group, and how many hold at a time', () => {
  const samples = samplesOf(
    [
      [0, 0, 1, 10, 20], // this waiter and the next one are of the large group
      [1, 0, 1, 11, 19],
      [0, 1, 8, 18, 30], // this waiter has a group of its own, and its wait counts from 9 on
      [0, 0, 2, 30, 40],
    ],
    { lock: 'groups', permits: 3 },
  )
  const jobs = { name: '', title: '', kind: 'burst', processes: 2, waiters: 2, keys: 1, hold: 1 } as const
  const figures = ofGroups(samples, { ...jobs, groups: [2, 1, 1] }, 9)
  expect(figures).toEqual({ waitMaxSmall: 9, mostAtOnce: 3, mostOfGroup: 2 })
})

describe('overtaking', () => {
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
})

test('a release that did not return removes the cycle, not the hold', () => {
  const samples = samplesOf([
    [0, 0, 1, 10, 20, Number.NaN],
    [0, 1, 2, 21, 30, 32],
  ])
  expect([...differences(samples, samples.done, samples.asked, always)]).toEqual([30])
  expect(ordinary(samples, 4, always)).toMatchObject({ acquisitions: 2, cycleP50: 30_000, waitMax: 19, overlaps: 0 })
})

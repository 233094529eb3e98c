/**
 * The witness, which gives the demo's verdict, judges hand-made histories. It must find no error in a good history. If
 * a test puts an error into the history, the witness must find it.
 */
import { test as base, describe, expect } from 'vitest'
import type { Order } from '../../../cli/demo/orders.ts'
import type { Answer } from '../../../cli/demo/shop.ts'
import { assess, passed } from '../../../cli/demo/verdict.ts'
import { type History, judge, type Section } from '../../../cli/demo/witness.ts'

const processes = 4
const perSection = 10
const gap = 1

/**
 * Makes a history of 60 orders of 60 customers, one critical section after another, by 4 processes in turn. All
 * requests are made before the first critical section begins.
 */
function goodHistory() {
  const orders: Order[] = Array.from({ length: 60 }, (_, n) => ({
    id: `S-${n}`,
    spelling: `C-${n}`,
    customer: `c${n}`,
    coupon: 'X',
    placedAt: '',
  }))
  const sections: Section[] = orders.map((order, n) => ({
    id: `section ${n}`,
    order: order.id,
    pid: 100 + (n % processes),
    request: Math.floor(n / processes) + 1,
    requestedAt: n / 100,
    begin: 10 + n * (perSection + gap),
    hold: `hold ${n}`,
    token: 5_000 + n * 7,
    found: null,
    end: 10 + n * (perSection + gap) + perSection,
    how: 'released',
  }))
  return {
    stock: 50,
    orders,
    answers: new Map<string, Answer>(orders.map((order, n) => [order.id, n < 50 ? 'sold' : 'sold out'])),
    stockLeft: 0,
    sections,
    snapshots: [0, 20, 40].map(first => sections.slice(first, first + 15).map(section => section.hold!)),
    killedAt: null as number | null,
    frozen: null as History['frozen'],
    lateWrite: 'refused' as const,
  } satisfies History
}

/** Declares a test, which receives a good history. */
const test = base.extend('history', () => goodHistory())

/** Delays a critical section and all later ones. */
function delay(sections: Section[], from: number, ms: number): void {
  sections.forEach((section, n) => {
    if (n < from) return
    sections[n] = { ...section, begin: section.begin + ms, end: section.end + ms }
  })
}

function swapTokens(sections: Section[], a: number, b: number): void {
  const [first, second] = [sections[a]!, sections[b]!]
  sections[a] = { ...first, token: second.token }
  sections[b] = { ...second, token: first.token }
}

test('nothing is found in a good history', () => {
  expect(judge(goodHistory())).toEqual({
    sold: 50,
    oversold: 0,
    doubles: 0,
    refusedDoubles: 0,
    stockDrift: 0,
    unanswered: 0,
    sections: 60,
    overlapping: 0,
    inversions: 0,
    pairs: 3 * ((15 * 14) / 2),
    handoffs: { count: 59, p50: gap, p99: gap },
    crashCost: null,
    freezeCost: null,
    lateWrite: 'refused',
  })
})

describe('the shop', () => {
  test('one sale more than the stock is oversold', ({ history }) => {
    history.answers.set('S-55', 'sold')
    expect(judge(history)).toMatchObject({ sold: 51, oversold: 1, stockDrift: 1 })
  })

  test('a second sale to a customer is a double, however the customer spells the id', ({ history }) => {
    history.orders[7] = { ...history.orders[7]!, spelling: ' ｃ３ ' }
    expect(judge(history).doubles).toBe(1)
  })
})

describe('overlap', () => {
  test('a section that begins before the previous one has ended', ({ history }) => {
    history.sections[20]!.end += gap + 0.001
    expect(judge(history).overlapping).toBe(2)
  })

  test('a killed holder whose lock is granted before its lease has ended', ({ history }) => {
    const { begin } = history.sections[20]!
    Object.assign(history.sections[20]!, { how: 'killed', end: begin + 1_500 })
    delay(history.sections, 21, 1_400)
    expect(judge(history).overlapping).toBeGreaterThan(1)
    delay(history.sections, 21, 100)
    expect(judge(history).overlapping).toBe(0)
  })

  test('a late write that the shop accepted', ({ history }) => {
    history.sections[20]!.end = history.sections[40]!.begin + 5
    expect(judge(history).overlapping).toBe(21)
  })
})

describe('order', () => {
  test('a neighbour overtaken in a snapshot', ({ history }) => {
    swapTokens(history.sections, 5, 6)
    expect(judge(history).inversions).toBe(1)
  })

  test('requests that waited while their process was frozen are left out; others of that process are not', () => {
    const history = goodHistory()
    const late = { ...history.sections[4]!, token: 9_999, begin: 2_000, end: 2_010 }
    history.sections[4] = late
    expect(judge(history).inversions).toBeGreaterThan(0)
    history.frozen = { pid: late.pid, from: 30, to: 1_000 }
    expect(judge(history).inversions).toBe(0)
    history.frozen = { pid: late.pid, from: 2_100, to: 3_000 }
    expect(judge(history).inversions).toBeGreaterThan(0)
  })
})

describe('hand-offs and costs', () => {
  test('a hand-off counts only if a process released, and the next one is another process that had waited', () => {
    const history = goodHistory()
    const before = judge(history).handoffs.count
    // Section 10 is now requested after section 9 has begun. So the process of section 10 does not count as one that
    // had waited.
    const asked = history.sections[10]!.begin - 1
    history.sections[10] = { ...history.sections[10]!, requestedAt: asked }
    history.sections[20]!.how = 'killed'
    history.sections[30] = { ...history.sections[30]!, pid: history.sections[29]!.pid }
    expect(judge(history).handoffs.count).toBe(before - 3)
  })
})

describe('the verdict', () => {
  const costs = { crashCost: 1_400, freezeCost: 1_400 }
  const good = { ...judge(goodHistory()), ...costs }

  test('a good history passes', () => {
    expect(passed(assess(good, true))).toBe(true)
  })

  test.each([
    { sold: 49 },
    { sold: 51 },
    { oversold: 1 },
    { doubles: 1 },
    { stockDrift: 1 },
    { stockDrift: -1 },
    { unanswered: 1 },
    { overlapping: 2 },
    { inversions: 1 },
    { lateWrite: 'accepted' as const },
    { lateWrite: null },
    { crashCost: null },
    { crashCost: 5_000 },
    { freezeCost: null },
  ])('it fails with %j', wrong => {
    const rows = assess({ ...good, ...wrong }, true)
    expect(rows.filter(row => row.ok === false)).toHaveLength(1)
  })
})

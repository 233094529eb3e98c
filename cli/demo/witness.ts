/**
 * The witness judges a finished sale from what was observed, never from what the lock reports of itself.
 *
 * Sold, oversold, doubles: counted in the shop's own keys, after the end. Sales beyond the stock are oversold. A second
 * sale to the same customer (normalised id) is a double. Stock left + sold must equal the stock at the start; otherwise
 * a write was lost.
 *
 * Critical sections: a section begins with the first statement under the lock and ends with the last one before the
 * release. The times of both statements come from the machine's monotonic clock. A section ends in one of three ways:
 *
 *  released   The worker is about to release the lock: the section ends then.
 *  killed     The process died inside the section. No other process could know that, so the section ends when its lease
 *             ends. The end of the lease is the one that the worker last reported. Without the lock, the section ends
 *             with the kill.
 *  lost       The process was frozen and continued, and the shop refused its late write. The section had no effect
 *             after the end of its lease, so it ends when its lease ends. If the shop had accepted the late write, the
 *             section would end with that write, and would overlap with all sections in between.
 *
 * Two sections overlap if one begins before the other has ended: one may then overwrite a value that the other has
 * read. A second check needs no clock: each section writes its mark into the shop and removes it at the end. If a
 * section finds the mark of another section, the two overlap, unless that other section was killed or lost and its
 * lease has ended.
 *
 * Order: the coordinator looks at the queue every 50 ms. Each snapshot lists the waiting requests in the order in which
 * they must be granted. Their fencing tokens show the order in which they were granted. If a request was granted after
 * one that was behind it in the queue, it was overtaken: this is an inversion. A second check needs no snapshot: a
 * process sends its requests in order, and they must be granted in order. (The second check says nothing about the
 * order between processes, so the number of compared pairs does not include its pairs.) Two groups of requests are left
 * out: requests that were never granted because their process was killed, and requests that waited while their process
 * was frozen. A frozen process cannot tend its waiters, so they may have lost their places.
 *
 * Hand-offs: if two sections follow each other in different processes, the hand-off is the time from the end of the
 * earlier section to the beginning of the later one. It counts only if the lock was requested for the later section
 * before the earlier section began. Nothing is handed over after a killed or lost section. The time from the kill or
 * the freeze to the next section is the crash cost or the freeze cost.
 */
import { normaliseCustomer, type Order } from './orders.ts'
import type { Answer } from './shop.ts'

export interface Section {
  readonly id: string
  readonly order: string
  /** The process, and the number of the request within it. */
  readonly pid: number
  readonly request: number
  readonly requestedAt: number
  readonly begin: number
  /** The hold's id and fencing token; null without the lock. */
  readonly hold: string | null
  readonly token: number | null
  /** The id of another critical section whose mark this section found in the shop, or null. */
  readonly found: string | null
  end: number
  how: 'open' | 'released' | 'killed' | 'lost'
}

export interface History {
  readonly stock: number
  readonly orders: readonly Order[]
  readonly answers: ReadonlyMap<string, Answer>
  readonly stockLeft: number
  readonly sections: readonly Section[]
  /** Ids of the waiting requests, in the order of the queue. */
  readonly snapshots: readonly (readonly string[])[]
  readonly killedAt: number | null
  readonly frozen: { readonly pid: number; readonly from: number; readonly to: number } | null
  /** What happened to the frozen worker's write. */
  readonly lateWrite: 'refused' | 'accepted' | null
}

export type Findings = ReturnType<typeof judge>

export function judge(history: History) {
  const { sections, killedAt, frozen } = history
  return {
    ...countSales(history),
    unanswered: history.orders.filter(order => !history.answers.has(order.id)).length,
    sections: sections.length,
    overlapping: findOverlaps(sections).size,
    inversions: findOvertaken(history).size,
    pairs: countPairs(history),
    handoffs: handoffs(sections),
    crashCost: killedAt === null ? null : timeToNext(sections, killedAt),
    freezeCost: frozen === null ? null : timeToNext(sections, frozen.from),
    lateWrite: history.lateWrite,
  }
}

function countSales({ orders, answers, stock, stockLeft }: History) {
  const sold = orders.filter(order => answers.get(order.id) === 'sold')
  // Normalises the ids again, because the witness does not rely on the shop to recognise spellings of the same
  // customer.
  const buyers = new Set(sold.map(order => `${order.coupon} ${normaliseCustomer(order.spelling)}`))
  return {
    sold: sold.length,
    oversold: Math.max(0, sold.length - stock),
    doubles: sold.length - buyers.size,
    refusedDoubles: orders.filter(order => answers.get(order.id) === 'has one').length,
    stockDrift: stockLeft + sold.length - stock,
  }
}

/** Returns the ids of all critical sections that overlap with another one. */
function findOverlaps(sections: readonly Section[]): Set<string> {
  const overlapping = new Set<string>()
  const byId = new Map(sections.map(section => [section.id, section]))
  let latest: Section | undefined // of the sections so far, the one that ends last
  for (const section of sections.toSorted((a, b) => a.begin - b.begin)) {
    if (latest && section.begin < latest.end) overlapping.add(latest.id).add(section.id)
    if (!latest || section.end > latest.end) latest = section
    if (section.found === null) continue
    const inside = byId.get(section.found)
    const gone = inside && inside.how !== 'released' && inside.end <= section.begin
    if (!gone) overlapping.add(section.found).add(section.id)
  }
  return overlapping
}

/**
 * Returns the granted requests whose order is judged. Requests that waited while their process was frozen are left out.
 */
function accountable({ frozen, sections }: History): Section[] {
  return sections.filter(
    ({ token, pid, requestedAt, begin }) =>
      token !== null && !(frozen && pid === frozen.pid && requestedAt < frozen.to && begin > frozen.from),
  )
}

/** Returns the snapshots of the queue, each reduced to the requests that were granted. */
function queues(history: History): Section[][] {
  const byHold = new Map(accountable(history).map(section => [section.hold, section]))
  return history.snapshots.map(ids => ids.map(id => byHold.get(id)).filter(section => section !== undefined))
}

/** Returns the requests of each process, in the order in which it made them. */
function ownOrders(history: History): Section[][] {
  const granted = accountable(history).toSorted((a, b) => a.request - b.request)
  return [...new Set(granted.map(section => section.pid))].map(pid => granted.filter(section => section.pid === pid))
}

/** Returns the requests that were granted after a request that was behind them in the queue. */
function findOvertaken(history: History): Set<string> {
  const overtaken = new Set<string>()
  for (const line of [...queues(history), ...ownOrders(history)]) {
    let earliestBehind = Number.POSITIVE_INFINITY
    for (const section of line.toReversed()) {
      if (section.token! > earliestBehind) overtaken.add(section.id)
      earliestBehind = Math.min(earliestBehind, section.token!)
    }
  }
  return overtaken
}

/**
 * Returns how many pairs of requests the snapshots compare. If there were none, "no inversions" would prove nothing.
 */
function countPairs(history: History): number {
  return queues(history).reduce((pairs, { length }) => pairs + (length * (length - 1)) / 2, 0)
}

export function handoffs(sections: readonly Section[]) {
  const inOrder = sections.filter(section => section.token !== null).toSorted((a, b) => a.token! - b.token!)
  const took: number[] = []
  inOrder.forEach((next, index) => {
    const previous = inOrder[index - 1]
    if (previous?.how === 'released' && previous.pid !== next.pid && next.requestedAt < previous.begin) {
      took.push(next.begin - previous.end)
    }
  })
  took.sort((a, b) => a - b)
  return { count: took.length, p50: percentile(took, 0.5), p99: percentile(took, 0.99) }
}

/** Returns the percentile by nearest rank; null if the list is empty. */
function percentile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.ceil(share * sorted.length) - 1] ?? null
}

/** Returns the time from `from` until the next critical section began. */
export function timeToNext(sections: readonly Section[], from: number): number | null {
  const next = Math.min(...sections.filter(section => section.begin > from).map(section => section.begin))
  return Number.isFinite(next) ? next - from : null
}

/**
 * The witness: judges a finished sale from what was observed, never from what the lock says of itself.
 *
 * Sold, oversold, doubles. Counted in the shop's own keys, after the end. More than the stock sold is oversold; an
 * order sold to a customer (normalised id) who has one is a double; and stock left + sold must be the stock at the
 * start, or some write was lost.
 *
 * Critical sections. One begins with the first statement under the lock and ends with the last one before the
 * release, both taken on the machine's monotonic clock. Three kinds of end:
 *
 *   released   the end is when the worker was about to release
 *   killed     the process died inside. Nobody could know, so the section still counts until its lease ends, as the
 *              worker itself last reckoned it; without the lock, until the kill
 *   lost       it was frozen, came back, and its late write was refused. Its effect ended before that, so it counts
 *              until its lease ended, likewise. Had the shop accepted the write, the section would count until then,
 *              and overlap with all that went on meanwhile
 *
 * Two sections overlap if one begins before the other has ended: then a value read by one may be written over by the
 * other. There is a second witness that needs no clock: each section puts a mark in the shop and takes it off at the
 * end; whoever finds the mark of a section that has neither ended nor been killed or lost has an overlap.
 *
 * Order. The queue is looked at from outside every 50 ms, which gives lists of waiting requests in the order in which
 * they must be granted; their fencing tokens tell in which order they were. A request that was granted after one
 * that stood behind it was overtaken, which is an inversion. A second source needs no snapshot: the requests of one
 * process go out in order, and must be granted in order. (It says nothing about processes among each other, and so
 * does not count as a comparison that proves order.) Requests that were never granted are left out (their process
 * was killed), and so are those that waited while their process was frozen: it could not say that it was alive, so it
 * may have lost its place.
 *
 * Hand-offs. From the end of one section to the beginning of the next in another process, if that one had asked
 * before the first section even began. Killed and lost sections hand over nothing; they are the crash cost.
 */
import { normaliseCustomer, type Order } from './orders.ts'
import type { Answer } from './shop.ts'

export interface Section {
  readonly id: string
  readonly order: string
  /** Process, and the how many-th request of it. */
  readonly pid: number
  readonly request: number
  readonly requestedAt: number
  readonly begin: number
  /** The hold's id and fencing token; null without the lock. */
  readonly hold: string | null
  readonly token: number | null
  /** The mark that was found inside. */
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
  /** Ids of the waiting requests, first in line first. */
  readonly snapshots: readonly (readonly string[])[]
  readonly killedAt: number | null
  readonly frozen: { readonly pid: number; readonly from: number; readonly to: number } | null
  /** What became of the frozen worker's write. */
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
  // Normalised here again: the witness does not take the shop's word for who is the same customer.
  const buyers = new Set(sold.map(order => `${order.coupon} ${normaliseCustomer(order.spelling)}`))
  return {
    sold: sold.length,
    oversold: Math.max(0, sold.length - stock),
    doubles: sold.length - buyers.size,
    refusedDoubles: orders.filter(order => answers.get(order.id) === 'has one').length,
    stockDrift: stockLeft + sold.length - stock,
  }
}

/** All sections that overlap with another. */
function findOverlaps(sections: readonly Section[]): Set<string> {
  const overlapping = new Set<string>()
  const byId = new Map(sections.map(section => [section.id, section]))
  let latest: Section | undefined // of those that began before, the one that ends last
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

/** The granted requests whose order must be right. */
function accountable({ frozen, sections }: History): Section[] {
  return sections.filter(
    ({ token, pid, requestedAt, begin }) =>
      token !== null && !(frozen && pid === frozen.pid && requestedAt < frozen.to && begin > frozen.from),
  )
}

/** The snapshots of the queue, as far as their requests were granted. */
function queues(history: History): Section[][] {
  const byHold = new Map(accountable(history).map(section => [section.hold, section]))
  return history.snapshots.map(ids => ids.map(id => byHold.get(id)).filter(section => section !== undefined))
}

/** The requests of each process, in the order in which it made them. */
function ownOrders(history: History): Section[][] {
  const granted = accountable(history).toSorted((a, b) => a.request - b.request)
  return [...new Set(granted.map(section => section.pid))].map(pid => granted.filter(section => section.pid === pid))
}

/** The requests that were granted after one that stood behind them. */
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

/** How many pairs were compared in the snapshots: with none, "no inversions" would mean nothing. */
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

/** Nearest rank; null when there is nothing to rank. */
function percentile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.ceil(share * sorted.length) - 1] ?? null
}

/** From this moment until somebody else was inside. */
export function timeToNext(sections: readonly Section[], from: number): number | null {
  const next = Math.min(...sections.filter(section => section.begin > from).map(section => section.begin))
  return Number.isFinite(next) ? next - from : null
}

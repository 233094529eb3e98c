/**
 * Whose turn is next among the groups of a semaphore. This is start-time fair queuing, as
 * lua/permits/semaphore/groups/settle.lua explains it. The calls without a group are one more group, ''.
 */
import { Heap, type Item } from '../../heap.ts'
import type { Crowd, NextJob, Share } from '../../kind.ts'

/** A group, as the turns know it. */
export interface Line extends Item, Share {
  finish: number
  weight: number
  /** The ticket of its first waiter. Only the turns change it. */
  ticket: number
}

/** The groups whose turn may come, the next one first. */
export class Turns<L extends Line = Line> extends Heap<L> {
  /** The start tag of the last grant. */
  virtual: number

  constructor(virtual = 0) {
    super()
    this.virtual = virtual
  }

  /** Decides anew whether a group may be next. `ticket`: of its first waiter; undefined: it has none, or is full. */
  settle(line: L, ticket: number | undefined): void {
    if (ticket === undefined) return this.delete(line)
    line.ticket = ticket
    this.set(line, Math.max(this.virtual, line.finish))
  }

  /** Counts the permits that were granted to a call of this group. */
  granted(line: L, permits: number): void {
    this.virtual = Math.max(this.virtual, line.finish)
    line.finish = this.virtual + permits / line.weight
  }

  protected override before(a: L, b: L): boolean {
    return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.ticket < b.ticket)
  }
}

/**
 * Estimates the place of a waiter in the order of all turns, from 1. `place`: inside its group, whose next job is `own`.
 * Of the groups that are not in `some`, as many jobs come before it as of those that are, on average.
 */
export function placeAmong({ waiters, groups, some }: Crowd, own: NextJob, place: number): number {
  const at = own.start + (place - 1) / own.rate
  const others = some.filter(({ group }) => group !== own.group)
  let before = 0
  // A job with the same start tag was there before. The sum of the tags is rounded.
  for (const { start, rate, waiters } of others) {
    before += Math.max(0, Math.min(waiters, Math.floor((at - start) * rate + 1 + 1e-6)))
  }
  const all = others.length === 0 ? 0 : (before / others.length) * Math.max(others.length, groups - 1)
  return Math.min(place + Math.round(all), Math.max(place, waiters + 1))
}

/**
 * Whose turn is next among the groups of a semaphore. This is start-time fair queuing, as
 * lua/groups.lua explains it. The calls without a group are one more group, ''.
 */
import { Heap, type Item } from '../../heap.ts'
import type { Crowd, Share, Turn } from '../../kind.ts'

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
 * Estimates the place of a waiter in the order of all turns, from 1, and says by how many permits the waiters before it
 * are served: `of`, or the limit of its group, if that is full. Of each other group that has a turn before, as many jobs
 * come before as of those that are described, on average. `place`: inside the group.
 */
export function among([waiters, some]: Crowd, turn: Turn, place: number, of: number): [place: number, of: number] {
  if (turn.length === 1) return [place, turn[0]]
  const [group, start, rate, groups] = turn
  const at = start + (place - 1) / rate
  const before: number[] = []
  for (const [other, start, rate, waiting] of some) {
    // A job with the same start tag is before: it was there first. The sum of the tags is rounded.
    const jobs = Math.min(waiting, Math.floor((at - start) * rate + 1 + 1e-6))
    if (other !== group && jobs > 0) before.push(jobs)
  }
  const each = before.reduce((sum, jobs) => sum + jobs, 0) / before.length || 1
  return [Math.min(place + Math.round(each * groups), Math.max(place, waiters + 1)), of]
}

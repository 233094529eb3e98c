/**
 * I1: the holds of two owners of one key never overlap, each counted until its own process stopped believing in it.
 *
 * One sweep over the holds by the time of their grant, with the latest end so far and the latest end of any other owner
 * than that one's: the new hold meets an earlier one of another owner if it begins before one of these two.
 * No tolerance: one clock, and every reading errs towards a shorter hold (history.ts, events.ts).
 */
import type { History, Hold, Violation } from './history.ts'

interface Counted {
  readonly hold: Hold
  readonly end: number
}

export function checkExclusion(history: History): Violation[] {
  return overlaps(history, hold => countedUntil(history, hold))
}

/**
 * A process believes in a hold for no longer than the longest lease that anybody asks for, whatever the server's clock says.
 * This stands also where a taking excuses an overlap. Nobody else prolongs it: neither an heir's predecessor, nor the other holds of its
 * owner.
 */
export function checkBelief(history: History): Violation[] {
  const { longestLease } = history.terms
  return [...history.all('grant'), ...history.all('renewed')].flatMap(event => {
    const grant = history.holdById.get(event.id)?.grant
    const believed = event.deadline - event.t
    if (!grant || believed <= longestLease) return []
    const text = `${grant.id} was believed in for ${Math.round(believed)} ms, which nobody had asked for`
    return { invariant: 'I1', key: grant.key, text, events: [grant, event] }
  })
}

/** How many overlaps there are that only takings excuse: what I1 would say if data were never lost. */
export function excusedOverlaps(history: History): number {
  return overlaps(history, ({ end }) => end).length - checkExclusion(history).length
}

function overlaps(history: History, endOf: (hold: Hold) => number): Violation[] {
  const violations: Violation[] = []
  for (const [key, holds] of history.holds) {
    let last: Counted | undefined
    let other: Counted | undefined
    for (const hold of holds) {
      const { owner, t } = hold.grant
      const end = endOf(hold)
      if (end <= t) continue
      const rival = last && last.hold.grant.owner !== owner ? last : other
      if (rival && rival.end > t) violations.push(overlap(key, rival, { hold, end }))
      if (!last || end >= last.end) {
        if (last && last.hold.grant.owner !== owner) other = last
        last = { hold, end }
      } else if (owner !== last.hold.grant.owner && (!other || end > other.end)) {
        other = { hold, end }
      }
    }
  }
  return violations
}

/** Until when I1 protects the hold: its end, or the moment from which it may have been taken away. */
export function countedUntil(history: History, hold: Hold): number {
  return Math.min(hold.end, history.takings.cut(hold.grant, hold.request?.t))
}

function overlap(key: string, first: Counted, second: Counted): Violation {
  const from = second.hold.grant.t
  const ms = Math.min(first.end, second.end) - from
  return {
    invariant: 'I1',
    key,
    text: `${first.hold.grant.owner} and ${second.hold.grant.owner} both held for ${ms.toFixed(3)} ms from ${from.toFixed(3)}`,
    events: [first.hold.grant, second.hold.grant],
  }
}

/**
 * I1: at any instant, the holds of a key together take no more than the newest of them allows (the number of permits
 * that its caller gave). Each hold counts as long as its own process counts on it. A mutex or a writer allows no other
 * hold.
 *
 * The check goes through the holds once, by the time of their grants, and keeps those that are still live. Redis
 * granted them in the order of their tokens, each while the earlier ones were live. So each hold has to fit, by its own
 * number of permits, with the earlier ones. An owner that re-enters does not conflict with itself. There is no
 * tolerance: all processes share one clock, and every inexact reading makes a hold shorter (history.ts, events.ts).
 */
import type { History, Hold, Violation } from './history.ts'
import { reenters, weightOf } from './wants.ts'

interface Counted {
  readonly hold: Hold
  readonly end: number
}

export function checkExclusion(history: History): Violation[] {
  return overlaps(history, hold => countedUntil(history, hold))
}

/**
 * Checks that no process counts on a hold for longer than the longest lease that any caller requests, whatever the
 * server's clock says. This also applies where a taking excuses an overlap. Nothing else may prolong a hold: neither
 * the predecessor in a local hand-off nor other holds of the same owner.
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

/** Returns the number of overlaps that are excused only by takings: I1 would report them if data could not be lost. */
export function excusedOverlaps(history: History): number {
  return overlaps(history, ({ end }) => end).length - checkExclusion(history).length
}

function overlaps(history: History, endOf: (hold: Hold) => number): Violation[] {
  const violations: Violation[] = []
  for (const [key, holds] of history.holds) {
    let live: Counted[] = []
    for (const hold of holds) {
      const { t } = hold.grant
      const end = endOf(hold)
      if (end <= t) continue
      live = live.filter(other => other.end > t)
      live.push({ hold, end })
      const together = tooMany(live, hold)
      if (together) violations.push(overlap(key, together, t))
    }
  }
  return violations
}

/** Finds holds that cannot all have been granted, the newest last. One is `heard`, whose grant has just arrived. */
function tooMany(live: readonly Counted[], heard: Hold): Counted[] | undefined {
  for (const newest of live) {
    const { grant, wants } = newest.hold
    if (grant.token < heard.grant.token) continue
    const { permits, of } = weightOf(wants)
    const before = live.filter(
      other =>
        other !== newest &&
        other.hold.grant.token <= grant.token &&
        !(reenters(wants) && other.hold.grant.owner === grant.owner),
    )
    if (newest.hold !== heard && !before.some(({ hold }) => hold === heard)) continue
    if (before.reduce((sum, { hold }) => sum + weightOf(hold.wants).permits, permits) > of) return [...before, newest]
  }
  return undefined
}

/** Returns the time until which I1 protects the hold: its end, or the moment from which it may have been taken away. */
export function countedUntil(history: History, hold: Hold): number {
  return Math.min(hold.end, history.takings.cut(hold.grant, hold.request?.t))
}

function overlap(key: string, together: readonly Counted[], from: number): Violation {
  const ms = Math.min(...together.map(({ end }) => end)) - from
  const owners = together.map(({ hold }) => hold.grant.owner).join(' and ')
  const wants = together.at(-1)!.hold.wants
  const sum = together.reduce((all, { hold }) => all + weightOf(hold.wants).permits, 0)
  const much = reenters(wants) ? 'both held' : `held ${sum} of ${weightOf(wants).of} permits`
  return {
    invariant: 'I1',
    key,
    text: `${owners} ${much} for ${ms.toFixed(3)} ms from ${from.toFixed(3)}`,
    events: together.map(({ hold }) => hold.grant),
  }
}

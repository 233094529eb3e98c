/**
 * I1: what the holds of a key have taken at any instant is never more than the asker of the newest of them has allowed for, each
 * hold counted until its own process stopped believing in it. Of a mutex, and of a writer, that is nothing beside it.
 *
 * One sweep over the holds by the time of their grant, with those that are believed in by then. Redis granted them in the order of
 * their tokens, and each while those before it were live: so each has to fit, by its own number, with those before it. An owner
 * that re-enters is not in its own way.
 * No tolerance: one clock, and every reading errs towards a shorter hold (history.ts, events.ts).
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

/** Holds that cannot all have been granted, the newest last, and the one that has just been heard of among them. */
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

/** Until when I1 protects the hold: its end, or the moment from which it may have been taken away. */
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

/**
 * I1: at any instant, the live holds of a key together take no more permits than the lock has. Each caller of a
 * semaphore states this number itself, so the number of the newest hold's caller counts. A mutex or a writer allows no
 * other hold. A hold is live for as long as its own process relies on it.
 *
 * The check goes through the holds once, by the time of their grants, and keeps those that are still live. Redis makes
 * grants in the order of their tokens. When it makes a grant, the earlier holds that are still live take some of the
 * permits. The new hold has to fit beside these holds, by the total that its own caller stated. An owner that re-enters
 * does not conflict with itself. The check needs no tolerance: all processes share one clock, and if a process reads it
 * a little too early or too late, the hold only seems shorter than it is (history.ts, events.ts).
 *
 * With `minHold`, nobody else is granted before that time has passed since the grant, even if the hold was released. It
 * counts from the time that the token says. Of two live holds with numbers, none has a number of the other.
 */
import type { History, Hold, Violation } from './history.ts'
import { TOLERANCE } from './takings.ts'
import { groupOf, limitOf, reenters, weightOf } from './wants.ts'

interface Counted {
  readonly hold: Hold
  readonly end: number
}

export function checkExclusion(history: History): Violation[] {
  return overlaps(history, hold => Math.min(keptUntil(history, hold), history.takings.cut(hold.grant, hold.request?.t)))
}

/** Returns the time until which no other caller may be granted what the hold has, if nothing takes it away. */
function keptUntil({ takings }: History, { grant, request, end }: Hold): number {
  const least = grant.via === 'reentry' ? 0 : (request?.minHold ?? 0)
  if (!request || least === 0) return end
  return Math.max(end, request.t + least, takings.issued(grant, request.t) - TOLERANCE + least)
}

/**
 * Checks that no process relies on a hold for longer than the longest lease that any caller requests. The server's
 * clock does not matter here, and no fault is an excuse. Nothing may prolong a hold beyond that lease, neither the
 * predecessor in a local hand-off nor another hold of the same owner.
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

/**
 * Returns the number of overlaps that are excused because a hold had been taken away, for example by a loss of data.
 */
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
      const twin = live.find(other => other.hold !== hold && sharesNumber(other.hold, hold))
      if (twin) {
        const text = `${twin.hold.grant.owner} and ${hold.grant.owner} had a number of the semaphore at the same time`
        violations.push({ invariant: 'I1', key, text, events: [twin.hold.grant, hold.grant] })
      }
    }
  }
  return violations
}

function sharesNumber(one: Hold, other: Hold): boolean {
  return one.grant.slots?.some(number => other.grant.slots?.includes(number)) ?? false
}

/**
 * Finds live holds that together exceed what the lock allows. One of them is `heard`, the hold whose grant has just
 * arrived. The result ends with the hold that Redis granted last.
 */
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
    const sum = (others: readonly Counted[]) =>
      others.reduce((sum, { hold }) => sum + weightOf(hold.wants).permits, permits)
    if (sum(before) > of) return [...before, newest]
    const mates = before.filter(({ hold }) => groupOf(hold.wants) === groupOf(wants))
    if (sum(mates) > limitOf(wants)) return [...mates, newest]
  }
  return undefined
}

/**
 * Returns the time until which I1 protects the hold. That is the end of the hold, or an earlier moment from which the
 * hold may have been taken away.
 */
export function countedUntil(history: History, hold: Hold): number {
  return Math.min(hold.end, history.takings.cut(hold.grant, hold.request?.t))
}

function overlap(key: string, together: readonly Counted[], from: number): Violation {
  const ms = Math.min(...together.map(({ end }) => end)) - from
  const owners = together.map(({ hold }) => hold.grant.owner).join(' and ')
  const wants = together.at(-1)!.hold.wants
  const sum = together.reduce((all, { hold }) => all + weightOf(hold.wants).permits, 0)
  const much = reenters(wants) ? 'both held' : `held ${sum} of ${Math.min(weightOf(wants).of, limitOf(wants))} permits`
  return {
    invariant: 'I1',
    key,
    text: `${owners} ${much} for ${ms.toFixed(3)} ms from ${from.toFixed(3)}`,
    events: together.map(({ hold }) => hold.grant),
  }
}

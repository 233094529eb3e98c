/**
 * The verdict on a history. The verdict depends only on the history's events. For n events, the checks take O(n log n)
 * time. The following files check the invariants:
 *
 *   I1  exclusion.ts   witness.ts        I4  progress.ts          I7  residue.ts
 *   I2  fencing.ts     witness.ts        I6  settlement.ts        I8  settlement.ts
 *   I3  order.ts  barging.ts  phases.ts  shares.ts
 *   I5  settlement.ts
 *
 * The checker does not see everything:
 * - I3: it sees the order of waiters that were in one snapshot of a queue, and the order between such a waiter and
 *   callers that arrive later.
 * - I5: it sees holds that were lost without a cause. It sees other violations only by their effects. For example, if a
 *   caller can release another caller's hold, two holds overlap.
 * - I9: it sees nothing, because a history has no counts of commands.
 */
import { checkBarging } from './barging.ts'
import type { HistoryEvent } from './events.ts'
import { checkBelief, checkExclusion, excusedOverlaps } from './exclusion.ts'
import { checkFencing } from './fencing.ts'
import { History, type Violation } from './history.ts'
import { checkOrder, type OrderReport } from './order.ts'
import { checkPhases } from './phases.ts'
import { checkProgress } from './progress.ts'
import { checkResidue } from './residue.ts'
import { checkDeadlocks, checkNotice, checkOwnership, checkSettlement } from './settlement.ts'
import { checkShares } from './shares.ts'
import { checkWitnesses } from './witness.ts'

export type { Violation } from './history.ts'

export interface Verdict {
  readonly violations: readonly Violation[]
  readonly grants: ReadonlyMap<string, number>
  readonly faults: ReadonlyMap<string, number>
  readonly ends: ReadonlyMap<string, number>
  /**
   * How many violations were excused. `overlaps` counts the overlaps with a hold that had been taken away from its
   * holder. `forged` counts the forged grants that a process believed. `witnesses` counts the reports of witnesses
   * (witness.ts) whose cause is a hold that had been taken away, or a forged grant.
   */
  readonly excused: { readonly overlaps: number; readonly forged: number; readonly witnesses: number }
  /**
   * How many waiters the checks of I3 compared. `barging`, `phases` and `shares` are the numbers of waiters that the
   * rules of barging.ts, phases.ts and shares.ts judged.
   */
  readonly order: Omit<OrderReport, 'violations'> & Readonly<Record<'barging' | 'phases' | 'shares', number>>
  readonly events: number
}

export function check(events: Iterable<HistoryEvent>): Verdict {
  const history = new History(events)
  const { violations: overtakings, ...order } = checkOrder(history)
  const barging = checkBarging(history)
  const phases = checkPhases(history)
  const shares = checkShares(history)
  const found = [
    ...checkExclusion(history),
    ...checkBelief(history),
    ...checkFencing(history),
    ...overtakings,
    ...barging.violations,
    ...phases.violations,
    ...shares.violations,
    ...checkProgress(history),
    ...checkSettlement(history),
    ...checkDeadlocks(history),
    ...checkResidue(history),
    ...checkNotice(history),
    ...checkOwnership(history),
  ]
  const witnesses = checkWitnesses(history, found)
  const said = history.all('met').length + history.all('fenced').length
  return {
    violations: [...found, ...witnesses],
    excused: {
      overlaps: excusedOverlaps(history),
      forged: [...history.holdById.values()].filter(({ forged }) => forged).length,
      witnesses:
        said - witnesses.filter(({ events: [event] }) => event?.kind === 'met' || event?.kind === 'fenced').length,
    },
    grants: count(history.all('grant'), ({ via }) => via),
    faults: count(
      history.all('fault').filter(({ phase }) => phase === 'begin'),
      ({ name }) => name,
    ),
    ends: count(history.all('end'), ({ how }) => how),
    order: { ...order, barging: barging.decided, phases: phases.decided, shares: shares.decided },
    events: history.events.length,
  }
}

/** Like `check`, but throws if there are violations. The error has their texts, and the events before the first one. */
export function checkPassing(events: readonly HistoryEvent[]): Verdict {
  const verdict = check(events)
  const [first] = verdict.violations
  if (!first) return verdict
  const texts = verdict.violations.map(({ invariant, text }) => `${invariant}: ${text}`)
  throw new Error([...texts, ...eventsBefore(first, events).map(event => JSON.stringify(event))].join('\n'))
}

/** A violation is shown together with the events up to this many ms after it. */
const AFTERMATH = 5

/**
 * Returns the events that help to explain a violation: the events of its key, the events of the holds and attempts of
 * that key, and all faults, deaths, stalls and changes of connections. Events more than a few ms after the violation
 * are left out. Of the others, only the latest `last` events are returned.
 */
export function eventsBefore({ key, events: own }: Violation, all: readonly HistoryEvent[], last = 50): HistoryEvent[] {
  const ids = new Set<string>()
  const attempts = new Set<string>()
  const related: HistoryEvent[] = []
  const until = own.length > 0 ? Math.max(...own.map(({ t }) => t)) + AFTERMATH : Number.POSITIVE_INFINITY
  for (const event of [...all].sort((a, b) => a.t - b.t)) {
    if (event.t > until) break
    if (event.kind === 'request' && event.key === key) attempts.add(event.attempt)
    if (event.kind === 'grant' && event.key === key) ids.add(event.id)
    const concerns =
      ('key' in event && event.key !== undefined
        ? event.key === key
        : ('id' in event && ids.has(event.id)) || ('attempt' in event && attempts.has(event.attempt))) ||
      ['fault', 'taken', 'died', 'stall', 'link'].includes(event.kind)
    if (concerns) related.push(event)
  }
  return related.slice(-last)
}

function count<T>(items: readonly T[], nameOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(nameOf(item), (counts.get(nameOf(item)) ?? 0) + 1)
  return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
}

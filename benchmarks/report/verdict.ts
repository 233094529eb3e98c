/** Decides which of the project's goals a run has reached. */
import type { Attainment, Results } from '../contract.ts'
import { type Goal, measured, median } from './goal.ts'
import { delayed, groups, otherKinds, quorum, unthrottled } from './goals.ts'

export function verdict(goal: Goal, run: Results, others: readonly Results[]): Attainment['verdict'] | 'not measured' {
  const own = within(goal, run)
  if (own !== 'reached') return own
  const again = others.filter(other => sameMachine(other, run)).map(other => within(goal, other))
  return again.includes('missed') ? 'not steady' : 'reached'
}

/**
 * Returns the verdicts on all goals for which the run has figures. Goals exist for loopback and for a round trip of 1
 * ms. `others` are repetitions of the run.
 */
export function attainments(run: Results, others: readonly Results[] = []): Attainment[] {
  const { rtt } = run.machine
  const goals =
    rtt === 0 ? [...unthrottled, ...otherKinds, ...quorum, ...groups] : rtt === 1 ? [...delayed, ...quorum] : []
  return goals.flatMap(goal => {
    const found = verdict(goal, run, others)
    if (found === 'not measured') return []
    return [{ what: goal.what, goal: goal.goal, measured: measured(goal, run), verdict: found }]
  })
}

function within({ columns, reached }: Goal, run: Results): 'reached' | 'missed' | 'not measured' {
  const all = columns.map(({ figures }) => figures(run))
  const taken = all.filter(figures => figures.length > 0)
  if (taken.some(figures => !reached(median(figures)))) return 'missed'
  return taken.length < all.length ? 'not measured' : 'reached'
}

function sameMachine({ machine: a }: Results, { machine: b }: Results): boolean {
  const facts = ['cpu', 'cores', 'node', 'redis', 'warmCores', 'rtt'] as const
  return facts.every(fact => a[fact] === b[fact])
}

/** What may be said of a goal. */
import type { Results } from '../../benchmarks/contract.ts'
import type { Goal } from './reach.ts'

/** Not steady: the run reached it, and another one on the same machine did not. */
export type Verdict = 'reached' | 'not steady' | 'missed' | 'not measured'

export function verdict(goal: Goal, run: Results, others: readonly Results[]): Verdict {
  const own = within(goal, run)
  if (own !== 'reached') return own
  const again = others.filter(other => sameMachine(other, run)).map(other => within(goal, other))
  return again.includes('missed') ? 'not steady' : 'reached'
}

function within({ columns, reached }: Goal, run: Results): Exclude<Verdict, 'not steady'> {
  const all = columns.map(({ figures }) => figures(run))
  const measured = all.filter(figures => figures.length > 0)
  if (measured.some(figures => !reached(median(figures)))) return 'missed'
  return measured.length < all.length ? 'not measured' : 'reached'
}

function sameMachine({ machine: a }: Results, { machine: b }: Results): boolean {
  const facts = ['cpu', 'cores', 'node', 'redis', 'warmCores', 'rtt'] as const
  return facts.every(fact => a[fact] === b[fact])
}

export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

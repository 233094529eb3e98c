import type { Scenario } from '../contract.ts'

/** What a scenario asks, which decides what of its figures the reports show first. */
export type Subject = Scenario['kind'] | 'uncontended' | 'mixed'

export function subjectOf({ kind, processes, waiters, mixed }: Scenario): Subject {
  if (mixed) return 'mixed'
  // Nobody to wait for, to share with, or to overtake.
  return kind === 'loop' && processes * waiters === 1 ? 'uncontended' : kind
}

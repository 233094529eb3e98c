import type { Scenario } from '../contract.ts'

/** The subject of a scenario. It decides which figures the reports show first. */
export type Subject =
  | Scenario['kind']
  | 'uncontended'
  | 'mixed'
  | 'phases'
  | 'quorum'
  | 'quorumAlone'
  | 'groups'
  | 'jobs'

export function subjectOf({ kind, lock, processes, waiters, mixed }: Scenario): Subject {
  if (mixed) return 'mixed'
  if (lock === 'groups' && kind !== 'loop') return kind === 'drain' ? 'groups' : 'jobs'
  if (kind === 'loop' && lock === 'readWrite') return 'phases'
  if (lock === 'quorum') return processes * waiters === 1 ? 'quorumAlone' : 'quorum'
  // A lone caller has nobody to wait for, so measures of waiting and fairness mean nothing.
  return kind === 'loop' && processes * waiters === 1 ? 'uncontended' : kind
}

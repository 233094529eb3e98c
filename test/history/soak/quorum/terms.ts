/** The times of a run over a quorum, in ms, and how many servers it takes to grant. */
import { type Times, TOKEN_MEMORY } from '../terms.ts'

/** All leases are short, so that a server that has come back empty counts again within a storm. */
const LONGEST_LEASE = 2_000

export const QUORUM_TIMES: Times = {
  waiterTtl: 3_000,
  longestLease: LONGEST_LEASE,
  // A server that was empty is left out for as long as the longest lease that a client asks for. All clients have to mean the same.
  lease: LONGEST_LEASE,
  outageTimeout: 4_000,
  tokenMemory: TOKEN_MEMORY,
}

/** Since its start, until a server that was empty surely counts for everybody: it tells its age in whole seconds. */
export const STANDING = LONGEST_LEASE + 2_000

export function majorityOf(servers: number): number {
  return Math.floor(servers / 2) + 1
}

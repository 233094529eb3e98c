/** The times of a run over a quorum, in ms, and how many servers are needed to grant. */
import { type Times, TOKEN_MEMORY } from '../terms.ts'

/** All leases are short, so that a server that has come back empty counts again within a storm. */
const LONGEST_LEASE = 2_000

export const QUORUM_TIMES: Times = {
  waiterTtl: 3_000,
  longestLease: LONGEST_LEASE,
  // A server that came back empty is left out for the longest lease that a client requests. All clients must use the
  // same value.
  lease: LONGEST_LEASE,
  outageTimeout: 4_000,
  tokenMemory: TOKEN_MEMORY,
}

/**
 * Time from its start until an emptied server certainly counts for all clients. Servers report their age in whole
 * seconds.
 */
export const STANDING = LONGEST_LEASE + 2_000

export function majorityOf(servers: number): number {
  return Math.floor(servers / 2) + 1
}

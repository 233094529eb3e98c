/** The times of a run over a quorum, in ms, and the number of servers that make a majority. */
import { type Times, TOKEN_MEMORY } from '../terms.ts'

/** All leases are short, so that a server that has come back empty counts again within a storm. */
const LONGEST_LEASE = 2_000

export const QUORUM_TIMES: Times = {
  waiterTtl: 3_000,
  longestLease: LONGEST_LEASE,
  // The client does not count a server that came back empty until the longest lease of any client has passed. All
  // clients must use the same value.
  lease: LONGEST_LEASE,
  outageTimeout: 4_000,
  tokenMemory: TOKEN_MEMORY,
}

/**
 * How long, in ms, an emptied server must be up before all clients certainly count its votes. Servers report their
 * uptime in whole seconds.
 */
export const STANDING = LONGEST_LEASE + 2_500

export function majorityOf(servers: number): number {
  return Math.floor(servers / 2) + 1
}

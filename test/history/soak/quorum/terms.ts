/** The times of a run over a quorum, in ms, and the number of servers that make a majority. */
import { type Times, TOKEN_MEMORY } from '../terms.ts'

/** All leases are short, so that the votes of a server that has come back empty count again within a storm. */
const LONGEST_LEASE = 2_000

export const QUORUM_TIMES: Times = {
  waiterTtl: 3_000,
  longestLease: LONGEST_LEASE,
  // When a server has come back empty, a client does not count the server's votes until the client's own longest lease
  // has passed. All clients have the same longest lease, so by then the leases of all clients have ended.
  lease: LONGEST_LEASE,
  outageTimeout: 4_000,
  tokenMemory: TOKEN_MEMORY,
}

/**
 * How long a server that has come back empty must be up before all clients certainly count its votes, in ms. This
 * includes a margin, because servers report their uptime in whole seconds.
 */
export const STANDING = LONGEST_LEASE + 2_500

export function majorityOf(servers: number): number {
  return Math.floor(servers / 2) + 1
}

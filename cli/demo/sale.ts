/** What is fixed about the sale, and the clock that all its processes share. */
export const sale = {
  /** How many coupons there are. */
  stock: 50,
  workers: 4,
  /** Orders that one worker has in hand at a time, so that 4 × 12 - 1 wait while one is served. */
  inFlight: 12,
  /** Lease of each grant. What a crashed holder costs the others, therefore short. Not renewed. */
  lease: 1_500,
  /**
   * Less than the lease: when the lease of a frozen process runs out, its other requests in the queue have expired
   * too and are passed over. Otherwise each of them would be granted to a process that cannot answer, for a lease each.
   */
  waiterTtl: 1_200,
  /** How long the payment takes that each order that finds a coupon makes before it is written. */
  payment: 25,
  /** The least that looking at an order takes, paid or not, so that a sale can be watched. */
  look: 8,
  /** A worker is killed once this many are sold, another is frozen once that many are: while coupons are left. */
  killAfter: 12,
  freezeAfter: 28,
  /** The frozen worker stays so for this long beyond its lease, time enough for the others to sell the rest. */
  frozenBeyondLease: 1_500,
  /** How often the queue is looked at from outside. */
  snapshotEvery: 50,
} as const

/**
 * Milliseconds of the machine's monotonic clock, not of the process: moments taken in different processes of one
 * machine can be compared, which `performance.now()` does not allow.
 */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`
}

/** The fixed numbers of the sale, and the clock that all its processes share. Times are in ms. */
export const sale = {
  /** The number of coupons. */
  stock: 50,
  workers: 4,
  /** Orders that one worker has in hand at a time. With four workers, 47 requests wait while one is served. */
  inFlight: 12,
  /**
   * The lease of each grant. It is not renewed. It is short because a crashed holder blocks the others for this long.
   */
  lease: 1_500,
  /**
   * The time without a heartbeat after which a waiter expires. This is shorter than the lease: when a frozen process
   * loses its lease, its other requests have already expired and the queue skips them. Otherwise each of them would be
   * granted to a process that cannot respond, and would block the queue for one lease.
   */
  waiterTtl: 1_200,
  /** How long a payment takes. An order that gets a coupon is paid before its answer is written. */
  payment: 25,
  /** The least time that an order takes, with or without a payment, so that a person can follow the sale. */
  look: 8,
  /**
   * One worker is killed after `killAfter` sales and another is frozen after `freezeAfter`, both while coupons are
   * left.
   */
  killAfter: 12,
  freezeAfter: 28,
  /**
   * The frozen worker stays frozen for this long after its lease ends, so that the other workers can sell the remaining
   * coupons.
   */
  frozenBeyondLease: 1_500,
  /** How often the coordinator looks at the queue. */
  snapshotEvery: 50,
} as const

/**
 * Milliseconds of the machine's monotonic clock. Moments taken in different processes of one machine can be compared,
 * unlike those of `performance.now()`.
 */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`
}

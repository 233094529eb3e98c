/** Counters and histograms of one client. */
import { createHistogram } from 'node:perf_hooks'
import type { Via } from '../kind.ts'

/**
 * A distribution of durations, in ms. Before the first measurement, all values are 0.
 * @since 0.1.0
 */
export interface TimeStats {
  /** The number of measurements. @since 0.1.0 */
  readonly count: number
  /** The shortest time, in ms. @since 0.1.0 */
  readonly min: number
  /** The longest time, in ms. @since 0.1.0 */
  readonly max: number
  /** The arithmetic mean, in ms. @since 0.1.0 */
  readonly mean: number
  /** The median, in ms. @since 0.1.0 */
  readonly p50: number
  /** The 90th percentile, in ms. @since 0.1.0 */
  readonly p90: number
  /** The 99th percentile, in ms. @since 0.1.0 */
  readonly p99: number
}

/**
 * The result of `LockClient.stats()`. The counters start at 0 when the client is made.
 * @since 0.1.0
 */
export interface ClientStats {
  /** The number of calls that are waiting now. @since 0.1.0 */
  readonly waiting: number
  /** The number of leases held now. @since 0.1.0 */
  readonly holding: number
  /** The number of grants. @since 0.1.0 */
  readonly acquired: number
  /** The number of grants, by how they came about. @since 0.1.0 */
  readonly via: Readonly<Record<Via, number>>
  /** The number of holds that were released. @since 0.1.0 */
  readonly released: number
  /** The number of renewals, both automatic and by `lease.renew`. @since 0.1.0 */
  readonly renewed: number
  /** The number of holds that were lost: they ended before they were released. @since 0.1.0 */
  readonly lost: number
  /** The number of calls whose `timeout` passed without a grant. @since 0.1.0 */
  readonly timedOut: number
  /** The number of single attempts that found the lock held by another owner. @since 0.1.0 */
  readonly refused: number
  /**
   * The number of calls that rejected and are counted neither as `timedOut` nor as `refused`, for example because their
   * signal was aborted.
   * @since 0.1.0
   */
  readonly failed: number
  /** The time from the call to the grant, in ms. @since 0.1.0 */
  readonly wait: TimeStats
  /** The time from the grant to the release or the loss, in ms. @since 0.1.0 */
  readonly hold: TimeStats
  /**
   * The time from a release in this client to the next grant of the same key in this client, in ms. Only measured if
   * the call that got the lock was already waiting at the time of the release.
   * @since 0.1.0
   */
  readonly handoff: TimeStats
}

/** The largest value that the histograms record, in µs: an hour. Longer times count as an hour. */
const LONGEST_MICROS = 3_600_000_000

export class Stats {
  readonly via: Record<Via, number> = { immediate: 0, handoff: 0, wakeup: 0, expiry: 0, reentry: 0 }
  released = 0
  renewed = 0
  lost = 0
  timedOut = 0
  refused = 0
  failed = 0
  readonly #wait = new Times()
  readonly #hold = new Times()
  readonly #handoff = new Times()

  acquired(via: Via, waited: number): void {
    this.via[via] += 1
    if (this.#wait.latest.push(waited) === TOGETHER) this.#wait.record()
  }

  ended(how: 'released' | 'lost', held: number): void {
    this[how] += 1
    if (this.#hold.latest.push(held) === TOGETHER) this.#hold.record()
  }

  handedOff(ms: number): void {
    if (this.#handoff.latest.push(ms) === TOGETHER) this.#handoff.record()
  }

  snapshot(waiting: number, holding: number): ClientStats {
    const { released, renewed, lost, timedOut, refused, failed } = this
    return {
      waiting,
      holding,
      acquired: Object.values(this.via).reduce((sum, count) => sum + count, 0),
      via: { ...this.via },
      released,
      renewed,
      lost,
      timedOut,
      refused,
      failed,
      wait: this.#wait.summary(),
      hold: this.#hold.summary(),
      handoff: this.#handoff.summary(),
    }
  }
}

/**
 * How many measured times are collected before they are added to the histogram. Each addition is a call into native
 * code. If each time were added at once, the call that gets or releases a lock would have to wait for the native code.
 */
const TOGETHER = 64

class Times {
  readonly #histogram = createHistogram({ lowest: 1, highest: LONGEST_MICROS, figures: 3 })
  /** Measured times that are not recorded yet, in ms. */
  readonly latest: number[] = []

  summary(): TimeStats {
    this.record()
    const of = this.#histogram
    if (of.count === 0) return { count: 0, min: 0, max: 0, mean: 0, p50: 0, p90: 0, p99: 0 }
    const ms = (micros: number) => Math.round(micros) / 1000
    return {
      count: of.count,
      min: ms(of.min),
      max: ms(of.max),
      mean: ms(of.mean),
      p50: ms(of.percentile(50)),
      p90: ms(of.percentile(90)),
      p99: ms(of.percentile(99)),
    }
  }

  record(): void {
    for (const ms of this.latest) {
      this.#histogram.record(Math.min(LONGEST_MICROS, Math.max(1, Math.round(ms * 1000))))
    }
    this.latest.length = 0
  }
}

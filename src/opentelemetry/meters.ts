/** The metrics: their names, units and buckets. Times are in seconds, as the conventions require. */
import type { Attributes, Meter } from '@opentelemetry/api'
import type { Via } from '../kind.ts'
import { type CallOutcome, type HoldOutcome, names } from './names.ts'

/**
 * The upper bounds of histogram buckets, in s. The smallest bound is about the time of one round trip. A call that
 * takes longer than the largest bound is clearly stuck.
 */
const BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600]

/**
 * The bucket bounds for hand-offs, in s. The small bounds are finer, because a hand-off within a client takes
 * microseconds.
 */
const HANDOFF_BOUNDS = [0.000_05, 0.000_1, 0.000_25, ...BOUNDS.filter(bound => bound <= 10)]

const vias: readonly Via[] = ['immediate', 'handoff', 'wakeup', 'expiry', 'reentry']

type Instruments = ReturnType<typeof instruments>

function instruments(meter: Meter) {
  const histogram = (name: string, description: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(name, { description, unit: 's', advice: { explicitBucketBoundaries } })
  const counter = (name: string, unit: string, description: string) => meter.createCounter(name, { description, unit })
  const gauge = (name: string, unit: string, description: string) =>
    meter.createUpDownCounter(name, { description, unit })
  return {
    wait: histogram(
      'redis_baton.wait.duration',
      'Time from a call for a lock until the call ends, with or without the lock.',
      BOUNDS,
    ),
    hold: histogram('redis_baton.hold.duration', 'Time from a grant until the end of the hold.', BOUNDS),
    handoff: histogram(
      'redis_baton.handoff.duration',
      'Time from a release of a lock to its next grant, if the waiter was in the same client.',
      HANDOFF_BOUNDS,
    ),
    waiters: gauge('redis_baton.waiters', '{waiter}', 'Calls that are waiting for a lock now.'),
    leases: gauge('redis_baton.leases', '{lease}', 'Leases that are held now.'),
    grants: counter('redis_baton.grants', '{grant}', 'Grants of locks, by how the lock was obtained.'),
    timeouts: counter('redis_baton.timeouts', '{call}', 'Calls that waited longer than their timeout.'),
    losses: counter('redis_baton.losses', '{lease}', 'Holds that ended without being released.'),
    renewals: counter('redis_baton.renewals', '{renewal}', 'Leases renewed.'),
    disconnections: counter('redis_baton.disconnections', '{disconnection}', 'Connections to Redis that were lost.'),
  }
}

export class Meters {
  readonly #instruments: Instruments
  readonly #common: Attributes

  /** `common`: attributes that every metric value gets. */
  constructor(meter: Meter, common: Attributes) {
    this.#instruments = instruments(meter)
    this.#common = common
    this.disconnected(0)
  }

  /** Returns a tally whose metric values get the common attributes and the attributes `of`. */
  tally(of: Attributes): Tally {
    return new Tally(this.#instruments, { ...this.#common, ...of })
  }

  disconnected(count = 1): void {
    this.#instruments.disconnections.add(count, this.#common)
  }
}

/**
 * Counts calls that have the same attributes. To make each call cheaper, most of the attribute objects are made once,
 * in the constructor.
 */
export class Tally {
  readonly #to: Instruments
  readonly #attributes: Attributes
  readonly #grants = new Map<Via, Attributes>()
  readonly #waits = new Map<Via, Attributes>()

  constructor(to: Instruments, attributes: Attributes) {
    this.#to = to
    this.#attributes = attributes
    const outcome: CallOutcome = 'granted'
    for (const via of vias) {
      const grant = { ...attributes, [names.via]: via }
      this.#grants.set(via, grant)
      this.#waits.set(via, { ...grant, [names.outcome]: outcome })
    }
  }

  /**
   * Reports every counter as 0. Otherwise a counter would appear with its first event, and a query for the counter's
   * increase would miss that event.
   */
  beginAtZero(): void {
    const { waiters, leases, timeouts, losses, renewals, grants } = this.#to
    for (const each of [waiters, leases, timeouts, losses, renewals]) each.add(0, this.#attributes)
    for (const attributes of this.#grants.values()) grants.add(0, attributes)
  }

  waiting(change: number): void {
    this.#to.waiters.add(change, this.#attributes)
  }

  holding(change: number): void {
    this.#to.leases.add(change, this.#attributes)
  }

  /** Counts a call that was granted the lock after `waited` ms. */
  granted(via: Via, waited: number): void {
    this.#to.grants.add(1, this.#grants.get(via))
    this.#to.wait.record(waited / 1000, this.#waits.get(via))
  }

  /** Counts a call that ended without a grant after `waited` ms. */
  without(outcome: CallOutcome, error: string | undefined, waited: number): void {
    if (outcome === 'timeout') this.#to.timeouts.add(1, this.#attributes)
    const cause = error === undefined ? {} : { [names.errorType]: error }
    this.#to.wait.record(waited / 1000, { ...this.#attributes, ...cause, [names.outcome]: outcome })
  }

  handedOff(ms: number): void {
    this.#to.handoff.record(ms / 1000, this.#attributes)
  }

  ended(outcome: HoldOutcome, held: number): void {
    if (outcome === 'lost') this.#to.losses.add(1, this.#attributes)
    this.#to.hold.record(held / 1000, { ...this.#attributes, [names.outcome]: outcome })
  }

  renewed(): void {
    this.#to.renewals.add(1, this.#attributes)
  }
}

/** A `Renewal` with its leases, and everything around it in the test's hands. */
import { surelyUntil } from '../../src/clock.ts'
import type { Granted } from '../../src/kind.ts'
import { type Keeper, Lease } from '../../src/lease/lease.ts'
import { Renewal } from '../../src/lease/renewal.ts'
import { FakeClock } from './fake-clock.ts'
import { FakeKind } from './fake-kind.ts'

export const LENGTH = 30_000

interface Grant extends Partial<Omit<Granted, 'granted'>> {
  id?: string
  key?: string
  owner?: string
  lease?: number
  /** false: a fixed lease. */
  renew?: boolean
  maxHold?: number
}

export class Leases {
  readonly clock = new FakeClock()
  readonly kind = new FakeKind()
  /** Ids of the leases of which it was told. */
  readonly renewed: string[] = []
  readonly lost: string[] = []
  readonly remaining: string[] = []
  readonly renewal: Renewal
  readonly #keeper: Keeper
  #granted = 0

  constructor() {
    const { kind, clock } = this
    this.renewal = new Renewal(kind, clock, {
      renewed: lease => this.renewed.push(lease.id),
      lost: lease => this.lost.push(lease.id),
      remains: lease => this.remaining.push(lease.id),
      idle: () => {},
    })
    this.#keeper = {
      clock,
      release: lease =>
        this.renewal.end(lease, async () => (await kind.release({ key: lease.key, id: lease.id })).ended),
      renew: (lease, ms) => this.renewal.renew(lease, ms),
    }
  }

  /** A lease that has just been granted, by a request that was answered in no time. */
  grant(grant: Grant = {}): Lease {
    const number = ++this.#granted
    const { id = `hold ${number}`, key = `key ${number}`, lease: length = LENGTH, renew = true } = grant
    const { owner = id } = grant
    const { maxHold = Number.POSITIVE_INFINITY, token = number, via = 'immediate' } = grant
    const since = this.clock.now()
    const { deadline = surelyUntil(since, length) } = grant
    const renewUntil = renew ? since + maxHold : since
    const terms = { id, hold: { key, id }, owner, label: '', lease: length, renewUntil, since, waited: 0 }
    const lease = new Lease(terms, { granted: true, token, deadline, via }, this.#keeper)
    this.renewal.add(lease)
    return lease
  }

  /** What each request for renewal asked for, as pairs of hold and ms. */
  get asked(): [id: string, ms: number][][] {
    return this.kind.renewals.all.map(({ args: [holds] }) => holds.map(({ hold, ms }) => [hold.id, ms]))
  }

  /** Answers the oldest request: every hold has as long as it asked for, from now on. */
  async answerRenewal(): Promise<void> {
    const call = this.kind.renewals.next
    const now = this.clock.now()
    await call.answer(call.args[0].map(({ ms }) => surelyUntil(now, ms)))
  }
}

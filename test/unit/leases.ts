/** Makes a `Renewal` with holds and their leases. The clock and the kind of lock are fakes, which the test controls. */
import { surelyUntil } from '../../src/clock.ts'
import type { Granted } from '../../src/kind.ts'
import { Lease } from '../../src/lease/lease.ts'
import { Renewal } from '../../src/lease/renewal.ts'
import { Hold } from '../../src/local/hold.ts'
import type { LocalLocks } from '../../src/local/local-locks.ts'
import { FakeClock } from './fake-clock.ts'
import { FakeKind } from './fake-kind.ts'
import { localLocks } from './waiting.ts'

export const LENGTH = 30_000

interface Grant extends Partial<Omit<Granted, 'granted'>> {
  id?: string
  key?: string
  owner?: string
  lease?: number
  /** Whether the lease is renewed. Default: true. */
  renew?: boolean
  maxHold?: number
}

export class Leases {
  readonly clock = new FakeClock()
  readonly kind: FakeKind
  /** Ids of the leases that were reported as renewed. */
  readonly renewed: string[] = []
  readonly lost: string[] = []
  readonly remaining: string[] = []
  readonly locks: LocalLocks
  readonly renewal: Renewal
  readonly #holds = new Map<Lease, Hold>()
  #granted = 0

  constructor(kind = new FakeKind()) {
    const { clock } = this
    this.kind = kind
    this.locks = localLocks(clock)
    this.renewal = new Renewal(kind, clock, this.locks, {
      renewed: hold => this.renewed.push(hold.claim.id),
      lost: hold => this.lost.push(hold.claim.id),
      remains: hold => this.remaining.push(hold.claim.id),
      outage: () => undefined,
      forgotten: () => {},
      ended: () => {},
    })
  }

  /** Grants a lease now, as if by a request that was answered without delay. */
  grant(grant: Grant = {}): Lease {
    const number = ++this.#granted
    const { id = `hold ${number}`, key = `key ${number}`, lease: length = LENGTH, renew = true } = grant
    const { owner = id } = grant
    const { maxHold = Number.POSITIVE_INFINITY, token = number, via = 'immediate' } = grant
    const since = this.clock.now()
    const { deadline = surelyUntil(since, length) } = grant
    const claim = { key, id, owner, label: '', lease: length, headStart: 0 }
    const asked = { claim, since, renew, maxHold, alone: false }
    const hold = new Hold(asked, { granted: true, token, deadline, via }, undefined, since, number)
    const { kind, renewal, clock } = this
    const lease = new Lease(hold, {
      remaining: hold => renewal.remaining(hold),
      lasts: hold => hold.remaining(clock.now()) > 0,
      release: hold =>
        renewal.end(
          hold,
          ({ name }) => kind.release(name),
          ({ ended }) => ended,
        ),
      renew: (hold, ms) => renewal.renew(hold, ms),
    })
    this.#holds.set(lease, hold)
    renewal.add(hold, grant.around)
    return lease
  }

  /** Tells the `Renewal` that these leases may be gone. */
  doubt(...leases: Lease[]): void {
    this.renewal.doubtAll(leases.map(lease => this.#holds.get(lease)!))
  }

  /** All requests for renewal so far. A request lists the ids of its holds, each with the requested lease in ms. */
  get asked(): [id: string, ms: number][][] {
    return this.kind.renewals.all.map(({ args: [holds] }) => holds.map(({ hold, ms }) => [hold.id, ms]))
  }

  /** Answers the oldest unanswered request: every hold is renewed from now on, for the requested time. */
  async answerRenewal(): Promise<void> {
    const call = this.kind.renewals.next
    const now = this.clock.now()
    await call.answer(call.args[0].map(({ ms }) => surelyUntil(now, ms)))
  }
}

/** Holds and their leases. */
import { test as base } from 'vitest'
import { surelyUntil } from '../../src/clock.ts'
import type { Hold } from '../../src/key/hold.ts'
import { Lease } from '../../src/key/lease.ts'
import type { Granted } from '../../src/kind.ts'
import { Room } from './room.ts'

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

export class Leases extends Room {
  /** Ids of the leases that were reported as renewed. */
  readonly renewed: string[] = []
  /** Ids of the leases that were reported as lost. */
  readonly gone: string[] = []
  readonly #holds = new Map<Lease, Hold>()
  #count = 0

  override tell(what: string, id: string): void {
    if (what === 'renewed') this.renewed.push(id)
    if (what === 'lost') this.gone.push(id)
  }

  /** Grants a lease now, as if by a request that was answered without delay. */
  hold(grant: Grant = {}): Lease {
    const number = ++this.#count
    const { id = `hold ${number}`, key = `key ${number}`, lease: length = LENGTH, renew = true } = grant
    const { owner = id } = grant
    const { maxHold = Number.POSITIVE_INFINITY, token = number, via = 'immediate' } = grant
    const since = this.clock.now()
    const { deadline = surelyUntil(since, length) } = grant
    const claim = { key, id, owner, label: '', lease: length, headStart: 0 }
    const asked = { claim, since, renew, maxHold }
    const of = this.table.of(key)
    const hold = this.holding.take(asked, of, { granted: true, token, deadline, via, around: grant.around }, since)
    const lease = new Lease(hold)
    this.#holds.set(lease, hold)
    return lease
  }

  /** Reports that these leases may be gone. */
  doubt(...leases: Lease[]): void {
    for (const lease of leases) this.holding.doubt(this.#holds.get(lease)!)
  }

  /** Ids of the holds that were ended in Redis. */
  get ended(): string[] {
    return this.kind.releases.all.map(({ args: [{ id }] }) => id)
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

/** Declares a test, which receives a client of its own. */
export const test = base.extend('at', () => new Leases())

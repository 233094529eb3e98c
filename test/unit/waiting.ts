/** Calls that wait for a lock. Each is refused, granted or notified by the test. */
import { test as base } from 'vitest'
import { Renewals } from '../../src/key/renewals.ts'
import type { Call, Waiter } from '../../src/key/waiter.ts'
import type { Granted, HeartbeatReply } from '../../src/kind.ts'
import { quiet, settled } from './promises.ts'
import { CLOCK, KEY, LEASE, Room } from './room.ts'

export { HEARTBEAT, KEY, LEASE, OUTAGE, WAITER_TTL } from './room.ts'

/** A waiter, and the end of its wait as a promise. */
export type Started = Waiter & { readonly outcome: Promise<Granted | undefined> }

interface Ask {
  id: string
  key?: string
  mode?: Call['mode']
  lease?: number
  owner?: string
  fairAfter?: number
  mayReenter?: boolean
  wants?: string
  minHold?: number
}

export class Waiting extends Room {
  /** Ids of the waiters that were reported as waiting. */
  readonly told: string[] = []

  override tell(what: string, id: string): void {
    if (what === 'waiting') this.told.push(id)
  }

  /** Starts a waiter, and waits until the client can do nothing more without an answer or a timer. */
  async start(ask: Ask): Promise<Started> {
    const {
      id,
      key = KEY,
      mode = 'line',
      lease = LEASE,
      owner = id,
      fairAfter,
      mayReenter = false,
      wants,
      minHold,
    } = ask
    const claim = { key, id, owner, label: '', lease, headStart: 0, wants, minHold }
    let waiter!: Waiter
    const outcome = new Promise<Granted | undefined>((resolve, reject) => {
      const since = this.clock.now()
      const call: Call = {
        mode,
        fairAfter,
        mayReenter,
        since,
        begun: this.requests.begunAt(since),
        answered: false,
        waited: (end, { key }, now) => {
          if (end instanceof Error) return reject(end)
          if (end) this.holding.take({ claim, since, renew: false, maxHold: 0 }, key, end, now)
          resolve(end)
        },
      }
      waiter = this.requests.start(claim, call, since)
    })
    quiet(outcome)
    await settled()
    return Object.assign(waiter, { outcome })
  }

  /** Ends the hold with this id, as if it had been released. */
  ended(id: string): void {
    const hold = this.table.hold(id)
    if (hold) this.holding.onHandedOn(hold, this.clock.now())
  }

  /** Starts a fair waiter that is refused and parks. */
  async parkedFair(ask: Ask, position = 1): Promise<Started> {
    const waiter = await this.start({ ...ask, mode: 'queue' })
    await this.kind.attempts.next.answer(this.refused({ position, ticket: `ticket of ${ask.id}` }))
    return waiter
  }

  /** Starts the first unfair waiter of a key. It is refused twice, before and after it subscribes, and then parks. */
  async parkedHead(ask: Ask): Promise<Started> {
    const waiter = await this.start(ask)
    await this.kind.attempts.next.answer(this.refused())
    await this.kind.attempts.next.answer(this.refused())
    return waiter
  }

  tended(waiters: HeartbeatReply['waiters'], tended: Partial<HeartbeatReply> = {}): HeartbeatReply {
    return {
      sent: this.clock.now(),
      ttl: LEASE,
      holder: { label: 'other', since: this.clock.now() - 5 },
      clock: CLOCK,
      waiters,
      ...tended,
    }
  }

  /** Refuses all waiters. Resolves when Redis has answered what was taken back. */
  close(): Promise<void> {
    this.requests.close()
    return this.withdrawals.close()
  }

  /** What the client still keeps for its waiters. While there are none, all numbers are 0 and `channels` is empty. */
  get residue() {
    this.rest()
    const renewals = this.schedule.items.find(item => item instanceof Renewals)
    const dueAt = renewals?.dueAt ?? 0
    if (renewals) this.schedule.delete(renewals)
    const residue = { waiting: this.table.waiting, timers: this.clock.armed, channels: this.channels.users }
    if (renewals) this.schedule.set(renewals, dueAt)
    return residue
  }
}

export const NOTHING = { waiting: 0, timers: 0, channels: {} }

/** Declares a test, which receives a client of its own. */
export const test = base.extend('at', () => new Waiting())

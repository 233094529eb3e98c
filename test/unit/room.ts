/**
 * The waiters and holds of one client, connected as src/kind-client.ts connects them. The clock, the channels and the
 * kind of lock are fakes, which the test controls.
 */
import { surelyUntil } from '../../src/clock.ts'
import { Holds } from '../../src/key/holds.ts'
import { Requests } from '../../src/key/requests.ts'
import { Schedule } from '../../src/key/schedule.ts'
import { type Named, Table } from '../../src/key/table.ts'
import { Withdrawals } from '../../src/key/withdrawals.ts'
import type { Granted, Refused, Via } from '../../src/kind.ts'
import { Lookup } from '../../src/lookup.ts'
import { FakeClock } from './fake-clock.ts'
import { FakeChannels, FakeKind } from './fake-kind.ts'

export const KEY = 'order:1'
export const LEASE = 30_000
export const WAITER_TTL = 9_000
/** The pause between heartbeats, in ms: a third of the waiters' expiry time. */
export const HEARTBEAT = WAITER_TTL / 3
export const OUTAGE = 15_000
/**
 * The lock's token clock in an answer, unless a test gives another value. Every later grant has a larger token, so a
 * grant with a smaller token is older than the answer.
 */
export const CLOCK = 50

export class Room {
  readonly clock = new FakeClock()
  readonly channels = new FakeChannels()
  readonly kind: FakeKind
  readonly schedule: Schedule
  readonly table: Table
  readonly named: Named = new Lookup()
  readonly requests: Requests
  readonly withdrawals: Withdrawals
  readonly holding: Holds
  readonly failures: unknown[] = []

  constructor(kind = new FakeKind()) {
    this.kind = kind
    const schedule = new Schedule(this.clock)
    this.schedule = schedule
    const failed = (error: unknown) => this.failures.push(error)
    this.table = new Table(this.named, schedule)
    const patience = { waiterTtl: WAITER_TTL, outage: OUTAGE }
    const withdrawals = new Withdrawals(kind, this.clock, WAITER_TTL, {
      onReleased: (key, released, now) => this.holding.follow(key, released, now),
      onFreed: key => this.table.keys.get(key)?.wake(this.clock.now()),
      failed,
    })
    this.withdrawals = withdrawals
    this.requests = new Requests(kind, this.channels, schedule, patience, this.table, withdrawals, {
      onWaiting: ({ claim }) => this.tell('waiting', claim.id),
      trouble: () => undefined,
    })
    this.holding = new Holds(kind, schedule, this.table, withdrawals, {
      onRenewed: ({ claim }) => this.tell('renewed', claim.id),
      onReleased: ({ claim }) => this.tell('released', claim.id),
      onLost: ({ claim }) => this.tell('lost', claim.id),
      onEnded: () => {},
      context: () => undefined,
      outage: () => undefined,
      failed,
    })
  }

  /**
   * Lets the keys without waiters do what they do when the agenda is next due. Until then, a key keeps the timer and the
   * subscriptions of its last waiter, because the next one may come at once.
   */
  rest(): void {
    for (const state of [...this.table.keys.values()]) {
      if (state.waiting > 0 || state.slot < 0) continue
      this.schedule.delete(state)
      state.due(this.clock.now())
    }
  }

  /** Called for each event. */
  tell(_what: string, _id: string): void {}

  // What arrives from Redis.

  unlocked(key: string): void {
    this.table.keys.get(key)?.onUnlocked(this.clock.now())
  }

  entered(key: string, owner: string): void {
    this.table.keys.get(key)?.onEntered(owner, this.clock.now())
  }

  /** A message grants the lock to the waiter with this id. */
  message(id: string, token: number, via: Via): boolean {
    return this.table.granted(id, { token, via }, this.clock.now())
  }

  /** A message says that the grant with this token was taken away. */
  lost(id: string, token: number): void {
    this.named.get(id)?.taken(token)
  }

  // Answers of Redis.

  granted(grant: Partial<Granted> = {}): Granted {
    return { granted: true, token: 1, deadline: surelyUntil(this.clock.now(), LEASE), via: 'immediate', ...grant }
  }

  refused(refusal: Partial<Refused> = {}): Refused {
    const holder = { label: 'other', since: this.clock.now() - 5 }
    const sent = this.clock.now()
    return { granted: false, sent, ttl: LEASE, position: 0, ticket: '0', holder, clock: CLOCK, ...refusal }
  }

  /** Ids of the waiters that have an unanswered attempt. */
  get asking(): string[] {
    return this.kind.attempts.open.map(({ args: [claim] }) => claim.id)
  }

  /** Ids of the waiters for which `leave` was called, in order. */
  get left(): string[] {
    return this.kind.leaves.all.map(({ args: [claim] }) => claim.id)
  }
}

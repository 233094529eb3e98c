/**
 * The waiters and holds of one client, connected as src/kind-client.ts connects them. The clock, the channels and the
 * kind of lock are fakes, which the test controls.
 */
import { surelyUntil } from '../../src/clock.ts'
import { Holds } from '../../src/key/holds.ts'
import { Io } from '../../src/key/io.ts'
import { Schedule } from '../../src/key/schedule.ts'
import { Table } from '../../src/key/table.ts'
import type { Granted, Refused, Via } from '../../src/kind.ts'
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
  readonly io: Io
  readonly holding: Holds
  readonly failures: unknown[] = []
  /** Ids of the holds that were reported as possibly gone. */
  readonly doubted: string[] = []

  constructor(kind = new FakeKind()) {
    this.kind = kind
    const schedule = new Schedule(this.clock)
    this.schedule = schedule
    const failed = (error: unknown) => this.failures.push(error)
    this.table = new Table(schedule)
    const patience = { waiterTtl: WAITER_TTL, outage: OUTAGE }
    this.io = new Io(kind, this.channels, schedule, patience, this.table, {
      waiting: ({ claim }) => this.tell('waiting', claim.id),
      doubt: (id, token) => {
        this.doubted.push(id)
        this.holding.doubt(id, token)
      },
      release: hold => this.holding.endings.begin(hold),
      left: hold => this.holding.endings.recent?.add(hold),
      trouble: () => undefined,
      failed,
    })
    this.holding = new Holds(kind, schedule, this.table, {
      renewed: ({ claim }) => this.tell('renewed', claim.id),
      context: () => undefined,
      released: ({ claim }) => this.tell('released', claim.id),
      lost: ({ claim }) => this.tell('lost', claim.id),
      failed,
      outage: () => undefined,
      closing: false,
      ended: () => {},
    })
  }

  /**
   * Lets the keys without waiters do what they do when the agenda is next due. Until then, a key keeps the timer and the
   * subscriptions of its last waiter, because the next one may come at once.
   */
  rest(): void {
    for (const state of [...this.table.states.values()]) {
      if (state.waiting > 0 || state.slot < 0) continue
      this.schedule.delete(state)
      state.due(this.clock.now())
    }
  }

  /** Called for each event. */
  tell(_what: string, _id: string): void {}

  // What arrives from Redis.

  unlocked(key: string): void {
    this.table.states.get(key)?.unlocked(this.clock.now())
  }

  entered(key: string, owner: string): void {
    this.table.states.get(key)?.entered(owner, this.clock.now())
  }

  /** A message grants the lock to the waiter with this id. */
  message(id: string, token: number, via: Via): boolean {
    return this.holding.granted(id, { token, via }, this.clock.now())
  }

  /** A message says that the grant with this token was taken away. */
  lost(id: string, token: number): void {
    const waiter = this.table.waiters.get(id)
    if (waiter) waiter.lost = token
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

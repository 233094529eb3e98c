/** Makes an `Acquirer` with a fake clock, fake channels and a fake kind of lock. The test controls these fakes. */
import { type Clock, surelyUntil } from '../../src/clock.ts'
import type { Claim, Granted, Refused, Tended } from '../../src/kind.ts'
import { Hold } from '../../src/local/hold.ts'
import { LocalLocks } from '../../src/local/local-locks.ts'
import type { Waiter, Wish } from '../../src/local/waiter.ts'
import { Acquirer } from '../../src/wait/acquire.ts'
import { noTurns, Turns } from '../../src/wait/turns.ts'
import { FakeClock } from './fake-clock.ts'
import { FakeChannels, FakeKind } from './fake-kind.ts'
import { quiet, settled } from './promises.ts'

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

/** A waiter, and the end of its wait as a promise. */
export type Started = Waiter & { readonly outcome: Promise<Granted | undefined> }

interface Ask {
  id: string
  key?: string
  mode?: Wish['mode']
  lease?: number
  owner?: string
  fairAfter?: number
  mayReenter?: boolean
  wants?: string
}

export function localLocks(clock: Clock, channels?: FakeChannels, shared = false): LocalLocks {
  const turns = new Turns(
    clock,
    key => channels?.hears(key, 'unlock') ?? false,
    key => (locks.get(key)?.waiting ?? 0) > 0,
  )
  const locks: LocalLocks = new LocalLocks(shared ? noTurns : turns, OUTAGE, shared)
  return locks
}

export class Waiting {
  readonly clock = new FakeClock()
  readonly kind: FakeKind
  readonly channels = new FakeChannels()
  /** Ids of the waiters that were reported as waiting. */
  readonly told: string[] = []
  /** Ids of the holds that were reported as possibly gone. */
  readonly doubted: string[] = []
  readonly failures: unknown[] = []
  readonly locks: LocalLocks
  readonly acquirer: Acquirer

  constructor(kind = new FakeKind()) {
    this.kind = kind
    this.locks = localLocks(this.clock, this.channels, kind.shared)
    this.acquirer = new Acquirer(
      this.kind,
      this.channels,
      this.clock,
      { waiterTtl: WAITER_TTL, outage: OUTAGE },
      this.locks,
      {
        waiting: waiter => this.told.push(waiter.claim.id),
        doubt: id => this.doubted.push(id),
        trouble: () => undefined,
        failed: error => this.failures.push(error),
      },
    )
  }

  /** Starts a waiter, and waits until the client can do nothing more without an answer or a timer. */
  async start(ask: Ask): Promise<Started> {
    const { id, key = KEY, mode = 'line', lease = LEASE, owner = id, fairAfter, mayReenter = false, wants } = ask
    const claim = { key, id, owner, label: '', lease, headStart: 0, wants }
    let waiter!: Waiter
    const outcome = new Promise<Granted | undefined>((resolve, reject) => {
      waiter = this.acquirer.start({ claim, mode, fairAfter, mayReenter }, end => {
        if (end instanceof Error) return reject(end)
        if (end) this.#hold(claim, end)
        resolve(end)
      })
    })
    quiet(outcome)
    await settled()
    return Object.assign(waiter, { outcome })
  }

  #hold(claim: Claim, grant: Granted): void {
    const now = this.clock.now()
    const asked = { claim, since: now, renew: false, maxHold: 0, alone: false }
    this.locks.addHold(new Hold(asked, grant, undefined, now, 1))
  }

  /** Records that the hold with this id has been released. */
  ended(id: string): void {
    const hold = this.locks.hold(id)
    if (hold) this.locks.dropHold(hold)
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

  granted(grant: Partial<Granted> = {}): Granted {
    return { granted: true, token: 1, deadline: surelyUntil(this.clock.now(), LEASE), via: 'immediate', ...grant }
  }

  refused(refusal: Partial<Refused> = {}): Refused {
    const holder = { label: 'other', since: this.clock.now() - 5 }
    return {
      granted: false,
      sent: this.clock.now(),
      ttl: LEASE,
      position: 0,
      ticket: '0',
      holder,
      clock: CLOCK,
      ...refusal,
    }
  }

  tended(waiters: Tended['waiters'], tended: Partial<Tended> = {}): Tended {
    return {
      sent: this.clock.now(),
      ttl: LEASE,
      holder: { label: 'other', since: this.clock.now() - 5 },
      clock: CLOCK,
      waiters,
      ...tended,
    }
  }

  /** Ids of the waiters that have an unanswered attempt. */
  get asking(): string[] {
    return this.kind.attempts.open.map(({ args: [claim] }) => claim.id)
  }

  /** Ids of the waiters for which `leave` was called, in order. */
  get left(): string[] {
    return this.kind.leaves.all.map(({ args: [claim] }) => claim.id)
  }

  /** What the acquirer still keeps. While there are no waiters, all numbers are zero and `channels` is empty. */
  get residue() {
    return { waiting: this.locks.waiting, timers: this.clock.armed, channels: this.channels.users }
  }
}

export const NOTHING = { waiting: 0, timers: 0, channels: {} }

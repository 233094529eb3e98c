/**
 * Tests waiters of a lock under random events in any order. The tests use the state machine alone, without a clock, a
 * connection or promises.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Granted, Refused, Tended } from '../../src/kind.ts'
import type { Attempt } from '../../src/local/effects.ts'
import { LocalLock } from '../../src/local/local-lock.ts'
import { LocalLocks } from '../../src/local/local-locks.ts'
import { WaiterRecord, type Wish } from '../../src/local/waiter.ts'
import { Turns } from '../../src/wait/turns.ts'

const LEASE = 1_000
const modes = ['once', 'line', 'queue'] as const

interface Ask {
  readonly waiter: WaiterRecord
  readonly attempt: Attempt
  readonly join: boolean
}

/** A lock, and all its unanswered requests. */
class Scene {
  now = 0
  readonly waiters: WaiterRecord[] = []
  readonly asks: Ask[] = []
  readonly tends: WaiterRecord[][] = []
  readonly confirmations: { readonly waiter: WaiterRecord; readonly grant: Granted }[] = []
  readonly undoing: WaiterRecord[] = []
  readonly ends = new Map<WaiterRecord, (Granted | Error | undefined)[]>()
  /**
   * The waiters whose requests were taken back, each with the number of its attempts that were unanswered at that
   * moment.
   */
  readonly left = new Map<WaiterRecord, number>()
  #token = 0
  #hearing = false
  readonly #locks: LocalLocks
  #latest: LocalLock

  constructor(replicated: boolean) {
    const clock = { now: () => this.now, after: () => ({ cancel() {} }) }
    const turns = new Turns(
      clock,
      () => true,
      () => false,
    )
    const locks = new LocalLocks(turns, 10_000, false)
    this.#locks = locks
    this.#latest = new LocalLock('key', locks)
    locks.requests = {
      now: clock.now,
      ask: (_, waiter, attempt, join) => this.asks.push({ waiter, attempt, join }),
      tend: (_, waiters) => this.tends.push([...waiters]),
      confirm: replicated ? (_, waiter, grant) => this.confirmations.push({ waiter, grant }) : undefined,
      undo: (_, waiter) => this.undoing.push(waiter),
      leave: waiter => this.left.set(waiter, this.underWay(waiter)),
    }
    locks.heartbeat = { look: lock => lock.look(), lookWithin() {} }
    locks.waitEffects = {
      hearsUnlock: () => this.#hearing,
      hearUnlock: line => {
        this.#hearing = true
        line.heard()
      },
      leaveTurn: line => line.tryNow(),
      endTurn() {},
      check: waiter => this.left.set(waiter, this.underWay(waiter)),
      parked() {},
      settled: waiter => locks.settled(waiter),
      empty() {},
    }
  }

  get lock(): LocalLock {
    return this.#locks.get('key') ?? this.#latest
  }

  get forgotten(): boolean {
    return this.#locks.get('key') === undefined
  }

  underWay(waiter: WaiterRecord): number {
    return this.asks.filter(ask => ask.waiter === waiter).length
  }

  come(mode: Wish['mode'], owner: string | undefined): void {
    const id = `w${this.waiters.length}`
    const claim = { key: 'key', id, owner: owner ?? id, label: '', lease: LEASE, headStart: 0 }
    const wish = { claim, mode, fairAfter: undefined, mayReenter: owner !== undefined }
    const waiter: WaiterRecord = new WaiterRecord(wish, this.now, this.now, end => this.ends.get(waiter)?.push(end))
    this.ends.set(waiter, [])
    this.waiters.push(waiter)
    const lock = this.#locks.arrive(waiter)
    this.#latest = lock
    if (mode === 'queue') {
      lock.announce(waiter)
      lock.join(waiter)
    } else if (mode === 'once' || owner) lock.tryAlone(waiter)
    else lock.stand(waiter)
  }

  grant(): Granted {
    this.#token += 1
    return { granted: true, token: this.#token, deadline: this.now + LEASE, via: 'handoff' }
  }

  refusal(owner?: string): Refused {
    const holder = { label: '', since: this.now }
    return { granted: false, sent: this.now, ttl: LEASE, position: 1, ticket: '1', holder, owner, clock: this.#token }
  }

  answer({ waiter, attempt, join }: Ask, granted: boolean, owner?: string): void {
    const before = waiter.state.is
    this.left.delete(waiter)
    this.lock.answered(waiter, attempt, join, granted ? this.grant() : this.refusal(owner))
    // I7: an answer may give the lock or a place in the queue to a waiter that no longer waits. Then the lock or the
    // place must be given back.
    if (before === 'over' && (granted || join)) expect(this.left.has(waiter)).toBe(true)
  }

  tended(waiters: WaiterRecord[], granted: boolean): void {
    const { sent, ttl, holder, clock } = this.refusal()
    const places = waiters.map((_, i) => (granted && i === 0 ? this.grant() : i + 1))
    const answer: Tended = { sent, ttl, holder: holder!, clock, waiters: places }
    this.lock.queue.tended(waiters, answer)
  }

  /** Checks the invariants that must hold at every moment. */
  check(): void {
    for (const [waiter, ends] of this.ends) expect(ends).toHaveLength(waiter.waits ? 0 : 1)
    expect(this.asks.filter(({ attempt }) => attempt === 'as-head').length, 'I9').toBeLessThanOrEqual(1)
    expect(this.tends.length).toBeLessThanOrEqual(1)
    const standing = this.waiters.filter(({ place }) => place && place.is !== 'arriving')
    expect(this.#locks.waiting).toBe(standing.length)
  }
}

const taken = <T>(list: T[], i: number): T | undefined => list.splice(i % Math.max(1, list.length), 1)[0]

type Step = (scene: Scene) => void

const which = fc.nat({ max: 20 })
const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(fc.constantFrom(...modes), fc.constantFrom(undefined, undefined, 'owner')).map(
    ([mode, owner]) =>
      (at: Scene) =>
        at.come(mode, owner),
  ),
  fc.tuple(which, fc.boolean(), fc.constantFrom(undefined, 'owner')).map(([i, granted, owner]) => (at: Scene) => {
    const ask = taken(at.asks, i)
    if (ask) at.answer(ask, granted, owner)
  }),
  fc.tuple(which, fc.constantFrom(undefined, new Error('gone'))).map(([i, error]) => (at: Scene) => {
    const waiter = at.waiters[i % Math.max(1, at.waiters.length)]
    if (waiter) at.lock.end(waiter, error)
  }),
  fc.boolean().map(granted => (at: Scene) => {
    const waiters = taken(at.tends, 0)
    if (waiters) at.tended(waiters, granted)
  }),
  which.map(i => (at: Scene) => {
    const waiter = at.waiters[i % Math.max(1, at.waiters.length)]
    if (waiter) at.lock.granted(waiter, at.grant().token, 'handoff')
  }),
  which.map(i => (at: Scene) => {
    const waiter = at.waiters[i % Math.max(1, at.waiters.length)]
    if (waiter) at.lock.lost(waiter, at.grant().token)
  }),
  fc.tuple(which, fc.boolean()).map(([i, enough]) => (at: Scene) => {
    const asked = taken(at.confirmations, i)
    if (asked && enough) at.lock.confirmed(asked.waiter, asked.grant, at.now, at.now + LEASE)
    else if (asked) at.lock.unconfirmed(asked.waiter, at.now, new Error('too few'))
  }),
  which.map(i => (at: Scene) => {
    const waiter = taken(at.undoing, i)
    if (waiter) at.lock.undone(waiter)
  }),
  // The waiter's `fairAfter` has passed, so it joins the queue.
  which.map(i => (at: Scene) => {
    const waiter = at.waiters[i % Math.max(1, at.waiters.length)]
    if (waiter?.place?.is !== 'standing') return
    at.lock.announce(waiter)
    at.lock.join(waiter)
  }),
  fc.constant((at: Scene) => at.lock.unlocked()),
  fc.constant((at: Scene) => at.lock.look()),
  fc.nat({ max: 700 }).map(ms => (at: Scene) => {
    at.now += ms
  }),
)

test('I7 I9 each wait ends once, one head asks at a time, and nothing is left when all waits have ended', () => {
  fc.assert(
    fc.property(fc.boolean(), fc.array(steps, { minLength: 5, maxLength: 60 }), (replicated, happens) => {
      const at = new Scene(replicated)
      for (const step of happens) {
        step(at)
        at.check()
      }
      for (const waiter of at.waiters) {
        const { inQueue, confirming, unanswered, waits } = waiter
        at.left.delete(waiter)
        at.lock.end(waiter, undefined)
        if (waits) expect(at.left.has(waiter)).toBe(inQueue || confirming || unanswered > 0)
      }
      for (let ask = at.asks.pop(); ask; ask = at.asks.pop()) at.answer(ask, true)
      for (let waiters = at.tends.pop(); waiters; waiters = at.tends.pop()) at.tended(waiters, false)
      at.check()
      expect(at.forgotten).toBe(true)
    }),
    { numRuns: 1_000 },
  )
})

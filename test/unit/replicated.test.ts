/** Tests calls whose holds count only once replicas have them, and what happens if too few replicas have one. */
import { test as base, expect } from 'vitest'
import type { Backend } from '../../src/backend.ts'
import { surelyUntil } from '../../src/clock.ts'
import { LockClosedError, LockConnectionError, LockTimeoutError } from '../../src/errors.ts'
import type { Lease } from '../../src/key/lease.ts'
import type { KindClient } from '../../src/kind-client.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import type { LockOptions } from '../../src/options.ts'
import type { LinkListener } from '../../src/redis/link.ts'
import { Session } from '../../src/session.ts'
import { settingsOf } from '../../src/settings.ts'
import { FakeClock } from './fake-clock.ts'
import { FakeChannels, FakeKind } from './fake-kind.ts'
import { now, quiet, settled } from './promises.ts'
import { CLOCK, KEY, LEASE, OUTAGE } from './room.ts'

const tooFew = new LockConnectionError('too few replicas')
const ways = [true, false]

/** A client with the option `replicas`. Its ids are 'A', 'B', …, in the order in which it asks for the lock. */
class Client {
  readonly clock = new FakeClock()
  readonly kind = new FakeKind({ replicated: true })
  readonly channels = new FakeChannels()
  readonly session: Session
  /** The names of the events so far. */
  readonly told: string[] = []
  listener!: LinkListener
  readonly #calls: KindClient
  #ids = 0

  constructor() {
    const nothing = () => {}
    const ids = { client: 'this client', next: () => String.fromCharCode(65 + this.#ids++) }
    const made = { kind: this.kind, keys: { root: 'lock:', keyOf: () => KEY } }
    const state = { ids, inboxPerLock: false, up: true, reachable: true, answeredAt: 0 }
    const does = { open: nothing, close: nothing, need: nothing, look: nothing, trouble: nothing, rest: async () => {} }
    const backend = { ...state, ...does, channels: () => this.channels, make: () => made } as unknown as Backend
    const settings = settingsOf({ replicas: { min: 1, timeout: 100 }, outageTimeout: OUTAGE, lease: LEASE })
    const connect = (listener: LinkListener) => {
      this.listener = listener
      return backend
    }
    const tell = (what: string, ..._: unknown[]) => {
      this.told.push(what)
    }
    this.session = new Session(connect, settings, this.clock, { listening: false, tell })
    this.#calls = this.session.locks(mutex) as KindClient
  }

  /** Calls `lock`, or with `blocking` false `tryLock`. */
  async call(
    options: LockOptions = {},
    blocking = true,
    key = KEY,
  ): Promise<{ readonly outcome: Promise<Lease | null> }> {
    const outcome = quiet(this.#calls.acquire(key, { fairAfter: Number.POSITIVE_INFINITY, ...options }, blocking))
    await settled()
    return { outcome }
  }

  /** Redis grants the lock to the oldest attempt. */
  async grant(token = 1, grant: { deadline?: number; block?: number } = {}): Promise<void> {
    const deadline = surelyUntil(this.clock.now(), LEASE)
    await this.kind.attempts.next.answer({ granted: true, token, deadline, via: 'immediate', ...grant })
  }

  async refuse(): Promise<void> {
    const [sent, holder] = [this.clock.now(), { label: 'other', since: 0 }]
    const refusal = { sent, ttl: LEASE, position: 0, ticket: '0', holder, clock: CLOCK }
    await this.kind.attempts.next.answer({ granted: false, ...refusal })
  }

  /** Replicas have the hold about which they were asked first. */
  async confirm(until = surelyUntil(this.clock.now(), LEASE)): Promise<void> {
    await this.kind.renewals.next.answer([until])
  }

  /** Too few replicas have the hold about which they were asked first. It is taken back. */
  async deny(): Promise<void> {
    await this.kind.renewals.next.fail(tooFew)
    for (const call of this.kind.leaves.open) await call.answer()
  }

  /** The ids with which the client has asked for the lock, and those that it has taken back. */
  get ids(): { asked: string[]; left: string[] } {
    const { attempts, leaves } = this.kind
    return { asked: attempts.all.map(({ args }) => args[0].id), left: leaves.all.map(({ args }) => args[0].id) }
  }

  get stats() {
    const { waiting, holding, acquired } = this.session.stats()
    return { waiting, holding, acquired }
  }
}

const test = base.extend('at', () => new Client())

// This test fails if `this.waited += late` is removed in src/key/hold.ts: the call has waited for the master
// only.
test('until replicas have its hold, a call waits, and no event tells of the hold', async ({ at }) => {
  const { outcome } = await at.call()
  await at.clock.advance(30)
  await at.grant()
  await at.clock.advance(LEASE / 2)
  expect(await now(outcome)).toBe('pending')
  expect([at.stats, at.told]).toEqual([{ waiting: 1, holding: 0, acquired: 0 }, []])
  const [asked, renewed] = at.kind.renewals.open
  await renewed!.answer([surelyUntil(at.clock.now(), LEASE)])
  await asked!.answer([surelyUntil(at.clock.now(), LEASE)])
  expect((await outcome)?.waited).toBe(30 + LEASE / 2)
  expect([at.stats, at.told]).toEqual([{ waiting: 0, holding: 1, acquired: 1 }, ['acquired']])
})

// This test fails if `surelyUntil(now, claim.lease)` becomes `Number.POSITIVE_INFINITY` in src/key/hold.ts.
test('I1: a hold counts for no longer than was asked for, even if the server’s clock was set back', async ({ at }) => {
  const { outcome } = await at.call()
  await at.grant(1, { deadline: at.clock.now() + LEASE / 2 })
  await at.confirm(at.clock.now() + LEASE + 60_000)
  const remaining = (await outcome)!.remaining()
  expect(remaining).toBeLessThanOrEqual(LEASE)
  expect(remaining).toBeGreaterThan(0.9 * LEASE)
})

test.for(['lost', 'replaced', undefined] as const)(
  'I6: a single attempt whose hold ends meanwhile rejects, and the hold is taken back: %s',
  async (answer, { at }) => {
    const { outcome } = await at.call({ lease: 1_000 }, false)
    await at.grant(1, { deadline: at.clock.now() + 900 })
    if (answer) await at.kind.renewals.next.answer([answer])
    // The lease runs out before there is an answer.
    else await at.clock.advance(1_000)
    const error = await now(outcome)
    expect(error).toBeInstanceOf(LockConnectionError)
    expect(String(error)).toContain('the lock was not replicated')
    expect([at.ids.left, at.told]).toEqual([['A'], []])
  },
)

// This test fails if `const id = context.backend.ids.next()` becomes `const id = this.waiter?.claim.id ??
// context.backend.ids.next()` in src/call.ts. It also fails if `this.#requests.leave(waiter)` is removed in
// src/replicated.ts: the master keeps the hold.
test.for(ways)(
  'I2 I4: a hold that too few replicas have is taken back, and the call asks again with a new id (fair: %s)',
  async (fair, { at }) => {
    const { outcome } = await at.call({ fair })
    await at.grant(100)
    await at.deny()
    expect(at.ids).toEqual({ asked: ['A'], left: ['A'] })
    await at.clock.advance(100)
    expect(at.ids.asked).toEqual(['A', 'B'])
    // Another server, which is the master now, has the first grant, and says so.
    at.listener.onGranted('A', { token: 100, via: 'handoff' }, 'lock')
    expect(at.kind.returns.all.map(({ args }) => args[0].id)).toEqual(['A'])
    await at.grant(50)
    await at.confirm()
    expect(await outcome).toMatchObject({ id: 'B', owner: 'B', fencingToken: 50 })
  },
)

// This test fails if `const PAUSE = 50` becomes `const PAUSE = 0` in src/replicated.ts.
test.for(ways)('I9: before a call asks again, it pauses (fair: %s)', async (fair, { at }) => {
  await at.call({ fair })
  await at.grant()
  await at.deny()
  await at.clock.advance(20)
  expect(at.ids.asked).toEqual(['A'])
  expect(at.stats).toEqual({ waiting: 1, holding: 0, acquired: 0 })
  await at.clock.advance(100)
  expect(at.ids.asked).toEqual(['A', 'B'])
})

// This test fails if `call.replicasAsked ??= now` becomes `call.replicasAsked = now` in src/replicated.ts: the call
// never ends.
test('I6: a call ends if its holds expire again and again because the replicas answer too slowly', async ({ at }) => {
  const begin = at.clock.now()
  const { outcome } = await at.call()
  let ended = false
  quiet(outcome).catch(() => {
    ended = true
  })
  while (!ended && at.clock.now() < begin + 2 * OUTAGE) {
    await at.grant()
    await at.clock.advance(500)
    await at.kind.renewals.next.answer(['lost'])
    for (const call of at.kind.leaves.open) await call.answer()
    await at.clock.advance(50)
  }
  await expect(outcome).rejects.toThrow('the lock was not replicated')
  expect(at.clock.now() - begin).toBeGreaterThanOrEqual(OUTAGE)
})

// According to performance.now(), a timer of Node may fire up to 1 ms early. This test fails if `now + PAUSE -`
// becomes `now -` in src/replicated.ts.
test('I6: a call ends, and does not ask again, if replicas refuse 1 ms before its patience is over', async ({ at }) => {
  const { outcome } = await at.call({ lease: 2 * OUTAGE })
  await at.grant(1, { deadline: at.clock.now() + 2 * OUTAGE })
  await at.clock.advance(OUTAGE - 1)
  await at.deny()
  await expect(outcome).rejects.toThrow('too few replicas')
  await at.clock.advance(1_000)
  expect(at.ids).toEqual({ asked: ['A'], left: ['A'] })
})

type When = 'asking' | 'pausing' | 'asking again'

async function callAt(at: Client, when: When, options: LockOptions): Promise<{ readonly outcome: Promise<unknown> }> {
  const call = await at.call(options)
  await at.grant()
  if (when === 'asking') return call
  await at.deny()
  if (when === 'asking again') await at.clock.advance(60)
  return call
}

const whens: When[] = ['asking', 'pausing', 'asking again']

// This test fails if `client.replicas?.end(this, undefined)` becomes `{}` in src/call.ts. It also fails if
// `waiter.call.answered = true` is removed in src/key/key.ts: the call waits for the answer to its second attempt.
test.for(whens)('I6 I7: a time-out ends the call at once, and takes back what it has: %s', async (when, { at }) => {
  const { outcome } = await callAt(at, when, { timeout: when === 'pausing' ? 30 : 80 })
  await at.clock.advance(80)
  expect(await now(outcome)).toBeInstanceOf(LockTimeoutError)
  expect(at.ids.left).toEqual(when === 'asking again' ? ['A', 'B'] : ['A'])
  await at.clock.advance(1_000)
  expect(at.ids.asked).toEqual(when === 'asking again' ? ['A', 'B'] : ['A'])
  expect([at.stats, at.told]).toEqual([{ waiting: 0, holding: 0, acquired: 0 }, []])
})

// This test fails if `if (closed(call.waiter)) call.end(new LockClosedError())` becomes `{}` in src/kind-client.ts. It
// also fails if `asked.has(taken) && ` is removed in src/replicated.ts.
test.for(whens)(
  'I7: `close` and a signal end the call at once, and take back what it has: %s',
  async (when, { at }) => {
    for (const end of ['close', 'abort']) {
      const client = end === 'close' ? at : new Client()
      const controller = new AbortController()
      const { outcome } = await callAt(client, when, { signal: controller.signal })
      if (end === 'close') void client.session.close(0)
      else controller.abort(new Error('enough'))
      const late = client.kind.renewals.open[0]
      const error = await now(outcome)
      if (end === 'close') expect(error).toBeInstanceOf(LockClosedError)
      else expect(error).toMatchObject({ message: 'enough' })
      expect(client.ids.left).toEqual(when === 'asking again' ? ['A', 'B'] : ['A'])
      await late?.answer([surelyUntil(client.clock.now(), LEASE)])
      await client.clock.advance(1_000)
      expect([client.stats, client.told]).toEqual([{ waiting: 0, holding: 0, acquired: 0 }, []])
    }
  },
)

// This test fails if ` && !this.#replicas.asked.has(hold)` is removed in src/kind-client.ts: the call's own hold
// counts as one that it re-enters.
test('I7: during a drain, a call that re-enters a hold goes on, and another call of a named owner ends', async ({
  at,
}) => {
  const first = await at.call({ owner: 'O' })
  await at.grant()
  await at.confirm()
  const lease = (await first.outcome)!
  const inner = await at.call({ owner: 'O' })
  await at.grant()
  void at.session.close(1_000)
  expect(await now(inner.outcome)).toBe('pending')
  await at.confirm()
  expect((await inner.outcome)?.held).toBe(true)
  expect(lease.held).toBe(true)

  const other = new Client()
  const held = await other.call({}, true, 'held meanwhile')
  await other.grant()
  await other.confirm()
  expect((await held.outcome)?.held).toBe(true)
  const { outcome } = await other.call({ owner: 'O' })
  await other.grant()
  void other.session.close(1_000)
  expect(await now(outcome)).toBeInstanceOf(LockClosedError)
})

// This test fails if `|| 'run' in end` is removed in src/replicated.ts: replicas are asked about the hand-off. It also
// fails if `this.run?.delay(late)` is removed in src/key/hold.ts: the run's time is over when its first holder begins.
test('I9: a caller asks once and subscribes to nothing, and hands the lock on without another question', async ({
  at,
}) => {
  const first = await at.call()
  await at.grant(1, { block: 1_000 })
  const second = await at.call()
  const cost = () => [at.kind.attempts.count, at.kind.renewals.count, at.channels.users]
  expect(cost()).toEqual([1, 1, {}])
  at.clock.block(1_000)
  await at.confirm()
  await (await first.outcome)!.release()
  expect(await second.outcome).toMatchObject({ via: 'handoff', fencingToken: 2 })
  expect(cost()).toEqual([1, 1, {}])
})

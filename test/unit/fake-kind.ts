/** Fakes of a kind of lock and of channels. The test answers their calls one by one, in any order. */
import type {
  Channel,
  Channels,
  Claim,
  Granted,
  HeartbeatEntry,
  HeartbeatReply,
  HoldName,
  Kind,
  KindTraits,
  NextHolder,
  Passed,
  Refused,
  Released,
  RenewalRequest,
  Renewed,
} from '../../src/kind.ts'
import { type Outcome, settle } from '../../src/outcome.ts'
import { settled } from './promises.ts'

/** One call that the code under test has made. */
export class Call<A extends unknown[], R> {
  readonly args: A
  readonly reply: Promise<R>
  answered = false
  #resolve!: (reply: R) => void
  #reject!: (error: Error) => void

  constructor(args: A) {
    this.args = args
    this.reply = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  async answer(reply: R): Promise<void> {
    this.answered = true
    this.#resolve(reply)
    await settled()
  }

  async fail(error: Error): Promise<void> {
    this.answered = true
    this.#reject(error)
    await settled()
  }
}

/** The calls of one method, in order. */
export class Calls<A extends unknown[], R> {
  readonly all: Call<A, R>[] = []

  make(...args: A): Promise<R> {
    const call = new Call<A, R>(args)
    this.all.push(call)
    return call.reply
  }

  get count(): number {
    return this.all.length
  }

  get open(): Call<A, R>[] {
    return this.all.filter(call => !call.answered)
  }

  /** The oldest call without an answer. */
  get next(): Call<A, R> {
    const [call] = this.open
    if (!call) throw new Error('no such call is waiting for its answer')
    return call
  }
}

/** What an attempt requests in addition to the lock: a place in the queue, or tokens for hand-offs. */
export type Beside = { readonly join: true } | { readonly reserve: number }

const notAsked = () => {
  throw new Error('neither waiting nor leases look at locks')
}

export class FakeKind implements Kind {
  readonly traits: KindTraits
  readonly inspection = { inspect: notAsked, isLocked: notAsked, find: notAsked, forceRelease: notAsked }
  readonly attempts = new Calls<[claim: Claim, beside: Beside], Granted | Refused>()
  readonly tends = new Calls<[key: string, waiters: readonly HeartbeatEntry[]], HeartbeatReply>()
  readonly leaves = new Calls<[claim: Claim], void>()
  readonly returns = new Calls<[hold: HoldName], void>()
  readonly releases = new Calls<[hold: HoldName, used: number | undefined], Released>()
  readonly passes = new Calls<[hold: HoldName, heir: NextHolder, token: number], Passed | undefined>()
  readonly renewals = new Calls<[asked: readonly RenewalRequest[]], Renewed[]>()

  constructor(traits: Partial<KindTraits> = {}) {
    this.traits = { shared: false, reentrant: true, queues: true, ...traits }
  }

  placeOf(): string {
    return ''
  }

  attempt(claim: Claim, mode: 'try' | 'queue', reserve: number, _waits: boolean, to: Outcome<Granted | Refused>): void {
    settle(this.attempts.make(claim, mode === 'queue' ? { join: true } : { reserve }), to)
  }

  tend(key: string, waiters: readonly HeartbeatEntry[]): Promise<HeartbeatReply> {
    return this.tends.make(key, waiters)
  }

  leave(claim: Claim): Promise<void> {
    return this.leaves.make(claim)
  }

  giveBack(hold: HoldName): Promise<void> {
    return this.returns.make(hold)
  }

  release(hold: HoldName, used: number | undefined, to: Outcome<Released>): void {
    settle(this.releases.make(hold, used), to)
  }

  pass(hold: HoldName, heir: NextHolder, token: number): Promise<Passed | undefined> {
    return this.passes.make(hold, heir, token)
  }

  renew(asked: readonly RenewalRequest[]): Promise<Renewed[]> {
    return this.renewals.make(asked)
  }
}

/**
 * Channels that count their users. A subscription succeeds at once. If `slow` is set, it succeeds only when the test
 * says so.
 */
export class FakeChannels implements Channels {
  slow = false
  readonly hearings = new Calls<[key: string, channel: Channel], void>()
  readonly #users = new Map<string, number>()
  readonly #confirmed = new Set<string>()

  subscribe(key: string, channel: Channel): Promise<void> | undefined {
    this.#count(key, channel, 1)
    const confirm = () => {
      this.#confirmed.add(`${channel} of ${key}`)
    }
    if (!this.slow) confirm()
    return this.slow ? this.hearings.make(key, channel).then(confirm) : undefined
  }

  isSubscribed(key: string, channel: Channel): boolean {
    const name = `${channel} of ${key}`
    return this.#confirmed.has(name) && (this.#users.get(name) ?? 0) > 0
  }

  /** The connection is lost: no subscription is confirmed any more. */
  deafen(): void {
    this.#confirmed.clear()
  }

  unsubscribe(key: string, channel: Channel): void {
    this.#count(key, channel, -1)
  }

  /** For each channel, how much more often `subscribe` was called than `unsubscribe`. */
  get users(): Record<string, number> {
    return Object.fromEntries([...this.#users].filter(([, count]) => count !== 0))
  }

  #count(key: string, channel: Channel, by: number): void {
    const name = `${channel} of ${key}`
    this.#users.set(name, (this.#users.get(name) ?? 0) + by)
  }
}

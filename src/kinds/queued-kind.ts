/**
 * `QueuedKind` calls the scripts of lua/ and translates their replies into the terms of `Kind`. It does so for all
 * kinds with a fair queue, because their scripts have the same names, arguments and replies. It does not wait and has
 * no time-outs.
 */
import { surelyUntil } from '../clock.ts'
import { LockDeadlockError, LockQueueFullError } from '../errors.ts'
import {
  type Claim,
  type Granted,
  type HeartbeatEntry,
  type HeartbeatReply,
  type Holder,
  type HoldName,
  type Inspection,
  type Kind,
  type KindNames,
  type KindTraits,
  type Names,
  type Pace,
  type Parts,
  type Refused,
  type Released,
  type RenewalRequest,
  type Renewed,
  type Reply,
  type Runner,
  type Standing,
  type Successor,
  slotsOf,
  type Traits,
  type Via,
  type Vote,
  type VoteMode,
} from '../kind.ts'
import type { Outcome } from '../outcome.ts'
import { decodeNames, encodeClaim } from './claim.ts'
import { Disagreements } from './disagreements.ts'
import { paceOf, standingOf } from './expected.ts'
import type { QueueScripts } from './scripts.ts'
import type { LockState } from './state.ts'

/** One script call renews at most this many locks. This bounds the time for which it blocks the server. */
const RENEWALS_PER_CALL = 200
/** One script call sends the heartbeat of at most this many waiters. lua/mutex/tend.lua relies on this limit. */
const WAITERS_PER_CALL = 500

export abstract class QueuedKind implements Kind<LockState> {
  readonly traits: KindTraits<LockState>
  abstract readonly inspection: Inspection<LockState>
  readonly #scripts: Runner<QueueScripts>
  /**
   * If replicas have to have each hold, this runner waits for the replicas after each script. Otherwise it is the same
   * as `#scripts`.
   */
  readonly #confirmed: Runner<QueueScripts>
  readonly #keys: KindNames
  readonly #waiterTtl: number
  readonly #wants: string | undefined
  readonly #expects: Traits<LockState>['expects']
  readonly #disagreements: Disagreements
  /** What the last claim without further options ended in. */
  #usual = { lease: -1, label: '', end: '' }
  /** The holder's label in the latest refusal, kept so that thousands of waiters for one holder share one string. */
  #holder = ''

  constructor(parts: Parts<QueueScripts>, traits: Traits<LockState>) {
    this.#wants = traits.wants
    this.#expects = traits.expects
    this.#disagreements = new Disagreements(traits, parts.warn)
    const { names, scripts: runner, replicated } = parts
    this.#scripts = runner
    const { noun, heldBy, shared, reentrant } = traits
    this.traits = { noun, heldBy, shared, reentrant, queues: true, replicated: replicated !== undefined }
    this.#confirmed = replicated ?? runner
    this.#keys = names
    this.#waiterTtl = parts.waiterTtl
  }

  /** How many tokens, after its own token, a grant may reserve for hand-offs within the client. */
  protected abstract readonly block: number

  /**
   * Makes an attempt. Only the mutex's script takes `floor` and `returned`, and only that of the other kinds takes
   * `waits`.
   */
  attempt(claim: Claim, mode: 'try' | 'queue', reserve: number, waits: boolean, to: Outcome<Granted | Refused>): void
  attempt(
    claim: Claim,
    mode: VoteMode,
    reserve: number,
    waits: boolean,
    to: Outcome<Vote>,
    floor: number,
    returned?: number,
  ): void
  attempt(
    claim: Claim,
    mode: VoteMode,
    reserve: number,
    waits: boolean,
    to: Outcome<Vote> | Outcome<Granted | Refused>,
    floor?: number,
    returned?: number,
  ): void {
    // A claim that has joined before keeps its place, however many waiters there are.
    const most = mode === 'queue' && !waits ? claim.maxWaiters : undefined
    const third = this.block > 0 ? floor : waits ? 1 : undefined
    const how = mode === 'try' && third === undefined ? undefined : (most ?? mode)
    const read = ({ status, values, sent }: Reply<ReturnType<QueueScripts['acquire']>>): Vote | Promise<Vote> => {
      if (status === 'unfinished') {
        return new Promise((done, failed) =>
          this.attempt(claim, mode, reserve, waits, { done, failed }, floor as number, returned),
        )
      }
      if (status === 'absent') return undefined
      if (status === 'refused') return this.#refused(claim, values as string[], sent)
      if (status === 'deadlock') throw new LockDeadlockError(claim.key)
      if (status === 'full') throw this.#full(claim, values as string[])
      const [token, ttl, around] = values as [string, string | undefined, string | undefined]
      const via = grantedVia[status]
      if (ttl === undefined) {
        const grant = grantedUntil(token, surelyUntil(sent, claim.lease), via)
        // Redis has to know the holder for whom it keeps the lock taken.
        const block = claim.minHold ? 0 : Math.min(reserve, this.block)
        return block > 0 ? { ...grant, block } : grant
      }
      // If the server's clock was set back, the server reports more time than is left. So this client relies on the
      // grant for at most the length of the claim's lease.
      const ends = surelyUntil(sent, Number(ttl))
      return { ...grantedUntil(token, Math.min(ends, surelyUntil(sent, claim.lease)), via), ends, around }
    }
    const args = [this.text(claim), how, third, returned] as const
    this.#scripts.post('acquire', this.#namesOf(claim), args, read, to as Outcome<Vote>)
  }

  async tend(key: string, waiters: readonly HeartbeatEntry[]): Promise<HeartbeatReply> {
    const calls: Promise<HeartbeatReply>[] = []
    for (let i = 0; i < waiters.length; i += WAITERS_PER_CALL) {
      calls.push(this.#tendSome(key, waiters.slice(i, i + WAITERS_PER_CALL)))
    }
    const parts = await Promise.all(calls)
    const last = parts[parts.length - 1] as HeartbeatReply
    const expected = parts.flatMap(part => part.expected ?? [])
    return { ...last, sent: parts[0]?.sent ?? last.sent, waiters: parts.flatMap(part => part.waiters), expected }
  }

  async #tendSome(key: string, waiters: readonly HeartbeatEntry[]): Promise<HeartbeatReply> {
    const list = waiters.flatMap(({ claim, ticket }) => [this.text(claim), ticket])
    const { status, values, sent } = await this.#scripts.run('tend', this.#keys.of(key), [this.#waiterTtl, ...list])
    if (status === 'unfinished') return this.#tendSome(key, waiters)
    type Place = number | string | [token: string, ttl: number, via: Via]
    type Values = [ttl: number, heldFor: number, clock: string, size: number | string, names: string, ...Place[]]
    const [ttl, heldFor, clockAndPace, size, text, ...places] = values as Values
    const [clock, pace] = paceOf(clockAndPace)
    const { owner, label } = decodeNames(text, Number.parseInt(`${size}`, 10))
    const holder = holderOf(label, sent - heldFor, `${size}`)
    return {
      sent,
      ttl,
      holder,
      owner,
      clock: Number(clock),
      expected: places.map((place, i) => {
        if (Array.isArray(place)) return undefined
        return this.#expected((waiters[i] as HeartbeatEntry).claim, standingOf(`${place}`), pace, holder, sent)
      }),
      waiters: places.map((place, i) => {
        if (!Array.isArray(place)) return standingOf(`${place}`).position
        const lasts = Math.min(place[1], (waiters[i] as HeartbeatEntry).claim.lease)
        return grantedUntil(place[0], surelyUntil(sent, lasts), place[2])
      }),
    }
  }

  async leave(claim: Claim): Promise<void> {
    await this.#leave(claim.key, claim.id, this.text(claim))
  }

  async giveBack({ key, id }: HoldName): Promise<void> {
    await this.#leave(key, id, undefined)
  }

  async #leave(key: string, id: string, entry: string | undefined): Promise<void> {
    const { status } = await this.#scripts.run('leave', this.#keys.of(key), [id, entry])
    if (status === 'unfinished') await this.sweep(key)
  }

  /**
   * Continues the search for the next holder. One script call passes over a limited number of dead waiters, so a search
   * may need several calls. Never rejects: if this call fails, the next attempt or heartbeat continues the search.
   */
  sweep(key: string): Promise<void> {
    const swept = this.#scripts.run('sweep', this.#keys.of(key), [], ({ status }) =>
      status === 'unfinished' ? this.sweep(key) : undefined,
    )
    return swept.then(noResult, noResult)
  }

  release(hold: HoldName, used: number | undefined, to: Outcome<Released>): void {
    const names = this.#namesOf(hold)
    const kept = hold.minHold ? 1 : undefined
    // Arguments have no names, so an argument before one that is present must be present, too.
    const more = this.block > 0 ? ([kept ? (used ?? 0) : used, kept] as const) : ([kept] as const)
    const read = ({
      status,
      values,
      sent,
      repeated,
    }: Reply<ReturnType<QueueScripts['release']>>): Released | Promise<Released> => {
      if (status === 'passed') return { ended: true, successors: passedTo(values as string[], sent) }
      if (status === 'unfinished') {
        const successors = passedTo(values as string[], sent)
        return this.sweep(hold.key).then(() => ({ ended: true, successors }))
      }
      // If a repeated call finds no hold, the earlier call most likely ended the hold, and its answer was lost. But the
      // hold may also have been taken away meanwhile, or Redis may have lost its data (docs/decisions/0006).
      return { ended: status === 'released' || repeated }
    }
    this.#scripts.post('release', names, [hold.id, ...more], read, to)
  }

  /** Kept with the claim, because the attempt and the release both need them. */
  #namesOf(of: HoldName): Names {
    of.names ??= this.#keys.of(of.key)
    return of.names
  }

  placeOf(key: string): string {
    return this.#keys.placeOf(key)
  }

  async renew(asked: readonly RenewalRequest[], scripts = this.#confirmed): Promise<Renewed[]> {
    const calls: Promise<Renewed[]>[] = []
    for (let i = 0; i < asked.length; i += RENEWALS_PER_CALL) {
      calls.push(this.#renewSome(asked.slice(i, i + RENEWALS_PER_CALL), scripts))
    }
    return (await Promise.all(calls)).flat()
  }

  async remaining(holds: readonly HoldName[]): Promise<HoldName[]> {
    const asked = holds.map(hold => ({ hold, token: 0, ms: 0 }))
    // Replicas are not asked: a server that has just taken over may have none.
    const found = await this.renew(asked, this.#scripts)
    return holds.filter((_, i) => found[i] !== 'lost')
  }

  async #renewSome(asked: readonly RenewalRequest[], scripts: Runner<QueueScripts>): Promise<Renewed[]> {
    const locks = asked.map(({ hold }) => this.#keys.of(hold.key).lock)
    const keys = { lock: locks[0]!, all: [...locks, ...locks.map(lock => `${lock}:d`)], least: locks.length }
    const args = asked.flatMap(({ hold, token, ms }) => [hold.id, token, ms])
    const { values, sent } = await scripts.run('renew', keys, args)
    return asked.map((_, i) => {
      const ttl = values[i]
      if (typeof ttl !== 'number') return 'lost'
      return ttl < 0 ? 'replaced' : surelyUntil(sent, ttl)
    })
  }

  #refused(claim: Claim, values: readonly string[], sent: number): Refused {
    const place = values[1] as string
    const size = values[5] as string
    const text = values.length === 7 ? (values[6] as string) : values.slice(6).join(' ')
    const { owner, label } = decodeNames(text, Number.parseInt(size, 10))
    const among = size.includes('/') && size.split('/')[1]
    if (among) this.#disagreements.check(claim, among, label)
    if (label !== this.#holder) this.#holder = label
    const holder = holderOf(this.#holder, sent - Number(values[3]), size)
    // The pace and the rest of the place are there only for a caller that is queued.
    const queued = place !== '0'
    const [clock, pace] = queued ? paceOf(values[4] as string) : [values[4], undefined]
    const standing = queued ? standingOf(place) : undefined
    return {
      granted: false,
      sent,
      ttl: Number(values[0]),
      position: standing?.position ?? 0,
      // `String(Number(…))` copies the ticket. Without the copy, the ticket would be a slice of the reply, and the
      // whole reply would stay in memory while the waiter waits.
      ticket: queued ? String(Number(values[2])) : '0',
      holder,
      owner,
      clock: Number(clock),
      expected: standing && this.#expected(claim, standing, pace, holder, sent),
    }
  }

  #expected(
    { wants }: Claim,
    { position, turn }: Pick<Standing, 'position' | 'turn'>,
    pace: Pace | undefined,
    { taken, since }: Holder,
    sent: number,
  ): number | undefined {
    if (!pace || position === 0) return undefined
    return this.#expects({ position: Math.abs(position), taken: taken?.[0], age: sent - since, turn }, pace, wants)
  }

  #full({ key, wants }: Claim, [waiters, known]: readonly string[]): LockQueueFullError {
    const [place, pace] = paceOf(known ?? '')
    const { position, turn } = standingOf(place)
    const at = { position: position || Number(waiters) + 1, taken: undefined, age: 0, turn }
    return new LockQueueFullError(key, Number(waiters), pace && this.#expects(at, pace, wants))
  }

  /** Claims of the same options end in the same text, which is made once. */
  protected text(claim: Claim): string {
    const { id, owner, label, lease, headStart, wants, minHold } = claim
    if (owner !== id || headStart || wants !== undefined || minHold)
      return encodeClaim(claim, this.#waiterTtl, this.#wants)
    if (lease !== this.#usual.lease || label !== this.#usual.label) {
      this.#usual = { lease, label, end: encodeClaim(claim, this.#waiterTtl, this.#wants).slice(id.length) }
    }
    return id + this.#usual.end
  }
}

const noResult = () => {}

/**
 * `size` is from the reply of a script: "<owner bytes>", and if the lock may have several holders, also "/<permits of
 * the lock by the holder's claim>/<permits taken>/<holds>".
 */
function holderOf(label: string, since: number, size: string): Holder {
  if (!size.includes('/')) return { label, since }
  const [, , taken, holds] = size.split('/')
  return { label, since, taken: [Number(taken), Number(holds)] }
}

/**
 * Returns the waiters of this client that got the lock through a release. `values` is from the reply to the release:
 * for each waiter its id, its token, and its remaining lease in ms.
 */
function passedTo(values: readonly string[], sent: number): Successor[] {
  const successors: Successor[] = []
  for (let i = 0; i < values.length; i += 3) {
    const [id, token, ttl] = values.slice(i, i + 3) as [string, string, string]
    successors.push({ id, grant: grantedUntil(token, surelyUntil(sent, Number(ttl)), 'handoff') })
  }
  return successors
}

const grantedVia = { granted: 'immediate', succeeded: 'expiry', reentered: 'reentry' } as const

function grantedUntil(token: unknown, deadline: number, via: Via): Granted {
  if (typeof token !== 'string' || !token.includes(':')) return { granted: true, token: Number(token), deadline, via }
  // With the numbers of its permits, a token is "<token>:<numbers>".
  const [number, slots = ''] = token.split(':')
  return { granted: true, token: Number(number), deadline, via, slots: slotsOf(slots) }
}

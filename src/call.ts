/**
 * One call of `lock` or `tryLock`. Its promise is the only one of the call, so nothing delays the caller after the grant.
 * Thousands of calls may wait at the same time, so a waiting call uses little memory: only a call with a time-out has a
 * timer, and only a call with a signal has a listener.
 */
import { AsyncResource } from 'node:async_hooks'
import type { Clock } from './clock.ts'
import { type HolderInfo, rejection } from './errors.ts'
import type { Hold } from './key/hold.ts'
import type { Holds } from './key/holds.ts'
import type { Lease } from './key/lease.ts'
import { limit } from './key/limits.ts'
import type { Requests } from './key/requests.ts'
import type { Call, Waiter } from './key/waiter.ts'
import type { Claim, Granted, Kind } from './kind.ts'
import type { Ids } from './redis/ids.ts'
import type { Confirmations, ReplicatedCall } from './replicated.ts'
import type { CallTerms } from './settings.ts'

/** Receives the holder because of which a call got no lease; undefined if the holder is not known. */
export type TellRefused = (holder: HolderInfo | undefined) => void

/** What a call needs of its client (kind-client.ts). */
export interface CallClient {
  readonly kind: Pick<Kind, 'traits'>
  readonly context: {
    readonly backend: { readonly ids: Ids }
    readonly clock: Clock
    readonly observer: { readonly listening: boolean }
  }
  readonly requests: Requests
  readonly holding: Holds
  readonly confirmations: Confirmations | undefined
  /** Turns the grant of a call into its lease. */
  take(call: LockCall, grant: Granted | Hold, now: number, handoff: number | undefined): Lease
  /** Counts a call that failed, and returns its error with the key. */
  failed(error: unknown, key: string): unknown
  /** Counts a call that was refused, or whose time is over. Returns the error with which it rejects, or null. */
  refused(call: LockCall): Error | null
  releaseQuietly(lease: Lease): Promise<boolean>
}

/** How a call settles its promise. */
type Resolve = (outcome: Lease | null | Promise<never>) => void

/**
 * Hands the function of a new promise to its call. One executor serves all calls: a closure for each costs memory. The
 * function keeps its promise, and so the lease, so it must not stay here.
 */
let settling: Resolve | undefined
const settledBy = (resolve: Resolve) => {
  settling = resolve
}

export class LockCall implements Call, ReplicatedCall {
  readonly client: CallClient
  readonly #promise: Promise<Lease | null>
  readonly key: string
  readonly terms: CallTerms
  readonly mode: Call['mode']
  readonly mayReenter: boolean
  readonly recorded: Promise<void> | undefined
  readonly context: AsyncResource | undefined
  readonly since: number
  readonly begun: number
  answered = false
  late = false
  replicasAsked: number | undefined
  /** The present waiter, or the last one. */
  waiter!: Waiter
  readonly #owner: string | undefined
  /** Whether the call rejects if it gets no lease. */
  readonly blocking: boolean
  readonly told: TellRefused | undefined
  readonly #resolve: Resolve
  #unlimited: (() => void) | undefined

  /** `owner`: undefined if the call's id is its owner. `told` receives the holder before the call resolves to null. */
  constructor(
    client: CallClient,
    key: string,
    owner: string | undefined,
    terms: CallTerms,
    once: boolean,
    blocking: boolean,
    told: TellRefused | undefined,
  ) {
    const { kind, context, requests } = client
    this.client = client
    this.key = key
    this.terms = terms
    this.#owner = owner
    // A kind without a queue has no fair waiters: all its waiters wait in the line of the unfair ones.
    this.mode = once ? 'once' : terms.fair && kind.traits.queues ? 'queue' : 'line'
    this.mayReenter = owner !== undefined && kind.traits.reentrant
    this.recorded = this.mayReenter ? client.holding.record(key, owner as string) : undefined
    this.context = context.observer.listening ? new AsyncResource('LOCK') : undefined
    this.since = context.clock.now()
    this.begun = requests.begunAt(this.since)
    this.blocking = blocking
    this.told = told
    this.#promise = new Promise<Lease | null>(settledBy)
    this.#resolve = settling as unknown as Resolve
    settling = undefined
  }

  get fairAfter(): number | undefined {
    return this.client.kind.traits.queues ? this.terms.fairAfter : undefined
  }

  get timeout(): number | undefined {
    return this.terms.timeout
  }

  get rejectLate(): boolean {
    return this.terms.rejectLate
  }

  /** Begins the call. Returns its promise. */
  start(): Promise<Lease | null> {
    this.ask(this.since)
    const { signal } = this.terms
    const timeout = this.mode === 'once' ? undefined : this.timeout
    if ((signal || timeout !== undefined) && this.waiter.waits) {
      this.#unlimited = limit(signal, timeout, this.client.context.clock, () => this.#giveUp())
    }
    return this.#promise
  }

  /** Begins a wait at `now`. Its claim has an id of its own. */
  ask(now: number): void {
    const { requests, context } = this.client
    const { label, lease, headStart, wants, minHold, maxWaiters } = this.terms
    const id = context.backend.ids.next()
    const owner = this.#owner ?? id
    const claim: Claim = { key: this.key, id, owner, label, lease, headStart, wants, minHold, maxWaiters }
    this.waiter = requests.start(claim, this, now)
  }

  waited(end: Granted | Error | undefined, waiter: Waiter, now: number, handoff?: number): void {
    this.waiter = waiter
    const { confirmations } = this.client
    // A hand-off within the client passes on a hold that replicas have.
    if (confirmations && end && 'token' in end && !('run' in end)) confirmations.confirm(this, end, now)
    else this.settle(end, now, handoff)
  }

  /** Ends the call. `end`: a grant, the hold of a grant, or why there is none; undefined: it was refused. */
  settle(end: Granted | Hold | Error | undefined, now: number, handoff?: number): void {
    const { client, terms } = this
    this.#unlimited?.()
    const lease = end && 'token' in end ? client.take(this, end, now, handoff) : undefined
    // A listener of the `acquired` event may have aborted the signal.
    if (terms.signal?.aborted) {
      if (lease) client.releaseQuietly(lease)
      // The reason is the caller's own object, so it keeps its stack.
      return this.#resolve(Promise.reject(client.failed(terms.signal.reason, this.key)))
    }
    const outcome = lease ?? (end ? client.failed(end, this.key) : client.refused(this))
    this.#resolve(outcome instanceof Error ? rejection(outcome) : (outcome as Lease | null))
  }

  #giveUp(): void {
    const { waiter, client, terms } = this
    if (!waiter.waits) client.confirmations?.end(this, undefined)
    else if (terms.signal?.aborted) client.requests.end(waiter, undefined)
    else {
      this.late = true
      client.requests.outOfTime(waiter)
    }
  }
}

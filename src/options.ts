/** The options of a client and of a call: their types, their defaults, and the check that everything goes through. */
import { hostname } from 'node:os'
import { LONGEST } from './clock.ts'
import { LockArgumentError } from './errors.ts'

/**
 * Options of one call of `lock`, `tryLock`, `using` or `wrap`. Times are ms. One that is undefined counts as absent.
 * @since 0.1.0
 */
export interface LockOptions {
  /**
   * Longest wait, in ms. `lock` then rejects with LockTimeoutError, `tryLock` resolves null. 0: a single attempt.
   * @defaultValue the client's `timeout`; without one, `lock` waits for ever and `tryLock` makes a single attempt
   * @since 0.1.0
   */
  timeout?: number | undefined
  /**
   * Aborting rejects the call with `signal.reason`, at once. Any number of calls may wait with one signal.
   * @defaultValue none
   * @since 0.1.0
   */
  signal?: AbortSignal | undefined
  /**
   * A fixed lease, in ms: not renewed unless `renew` is true. Shorter: a crashed holder blocks others less long. Longer:
   * fewer renewals, and a longer pause of the process is survived.
   * @defaultValue the client's `lease`, renewed
   * @since 0.1.0
   */
  lease?: number | undefined
  /**
   * Whether the lease is renewed every third of it.
   * @defaultValue `true` without `lease`, `false` with it
   * @since 0.1.0
   */
  renew?: boolean | undefined
  /**
   * Automatic renewal stops this many ms after the grant, so that a hung job cannot hold for ever.
   * @defaultValue none: it never stops
   * @since 0.1.0
   */
  maxHold?: number | undefined
  /**
   * true: first come, first served, by a queue in Redis. false: whoever asks first after a release wins, which is faster
   * under contention; who has waited for `fairAfter` then joins the queue.
   * @defaultValue the client's `fair`
   * @since 0.1.0
   */
  fair?: boolean | undefined
  /**
   * With `fair: false`: join the fair queue after having waited this many ms, so that nobody starves. `Infinity`: never; then
   * a waiter may be overtaken for ever.
   * @defaultValue the client's `fairAfter`
   * @since 0.1.0
   */
  fairAfter?: number | undefined
  /**
   * In the fair queue, be ordered as if the request had been made this many ms earlier. Later requests still age past it.
   * Of an unfair call it counts once that joins the queue; with `fairAfter: Infinity` it never does, and is refused.
   * @defaultValue `0`
   * @since 0.1.0
   */
  headStart?: number | undefined
  /**
   * Explicit identity, of 1 to 1024 UTF-8 bytes: the same owner re-enters, also from another process.
   * @defaultValue that of `runAs` or of the `using` of the same key around the call; else each call has its own
   * @since 0.1.0
   */
  owner?: string | undefined
  /**
   * Shown to others for this call, as who holds or waits; at most 1024 UTF-8 bytes.
   * @defaultValue the client's `label`
   * @since 0.2.0
   */
  label?: string | undefined
}

/**
 * Options of one call on a semaphore.
 * @since 0.2.0
 */
export interface SemaphoreOptions extends LockOptions {
  /**
   * How many permits this call takes: at most as many as the semaphore has.
   * @defaultValue `1`
   * @since 0.2.0
   */
  permits?: number | undefined
}

/**
 * Options of `LockClient.close`. One that is undefined counts as absent.
 * @since 0.2.0
 */
export interface CloseOptions {
  /**
   * For how many ms those who hold are given time to release, while their leases are renewed.
   * @defaultValue `0`
   * @since 0.2.0
   */
  drain?: number | undefined
}

/**
 * Options of a LockClient. Times are ms. One that is undefined counts as absent.
 * @since 0.1.0
 */
export interface ClientOptions {
  /**
   * First part of every key and channel in Redis: clients share their locks only where it is the same.
   * @defaultValue `'lock'`
   * @since 0.1.0
   */
  prefix?: string | undefined
  /**
   * Lease of a grant whose caller names none, in ms; renewed automatically every third of it.
   * @defaultValue `30_000`
   * @since 0.1.0
   */
  lease?: number | undefined
  /**
   * Expiry of a waiter in the fair queue, in ms, renewed every third of it. It is also how long a waiter whose process
   * has died without a trace can delay others, and a third of it how late a lost message is noticed.
   * @defaultValue `10_000`
   * @since 0.1.0
   */
  waiterTtl?: number | undefined
  /**
   * How many ms a free lock's token clock is kept in Redis after its last use.
   * @defaultValue `600_000`
   * @since 0.1.0
   */
  tokenMemory?: number | undefined
  /**
   * The default of the option of the same name of each call.
   * @defaultValue `false`
   * @since 0.1.0
   */
  fair?: boolean | undefined
  /**
   * The default of the option of the same name of each call, in ms. `Infinity`: unfair callers never queue.
   * @defaultValue `1_000`
   * @since 0.1.0
   */
  fairAfter?: number | undefined
  /**
   * The default of the option of the same name of each call, in ms.
   * @defaultValue none
   * @since 0.1.0
   */
  timeout?: number | undefined
  /**
   * How many ms a pending call rides out an unreachable Redis before it rejects with LockConnectionError.
   * @defaultValue `15_000`
   * @since 0.1.0
   */
  outageTimeout?: number | undefined
  /**
   * Shown to others as who holds or waits, by calls that name no `label` of their own; at most 1024 UTF-8 bytes.
   * @defaultValue `host:pid`
   * @since 0.1.0
   */
  label?: string | undefined
  /**
   * A grant counts only once replicas have it.
   * @defaultValue none: it counts as soon as the master has it
   * @since 0.1.0
   */
  replicas?: Replicas | undefined
}

/**
 * How many replicas must have a grant, or the prolongation of a lease, before it counts. A grant that they do not have in
 * time is undone, and the call goes on waiting; for at most `outageTimeout`, or not at all where there is a single attempt,
 * and then rejects with LockConnectionError.
 * @since 0.1.0
 */
export interface Replicas {
  /** How many replicas: at least 1. @since 0.1.0 */
  min: number
  /** How long to wait for them each time, in ms: at most a quarter of `outageTimeout`. @since 0.1.0 */
  timeout: number
  /**
   * Whether they must have written it to disk, too: needs a server that has WAITAOF, and replicas with an append-only file.
   * @defaultValue `false`
   * @since 0.1.0
   */
  fsync?: boolean | undefined
}

/** A client's options with all defaults filled in; two of them have none. */
export interface Settings {
  readonly prefix: string
  readonly lease: number
  readonly waiterTtl: number
  readonly tokenMemory: number
  readonly fair: boolean
  /** Infinity: never. */
  readonly fairAfter: number
  readonly timeout: number | undefined
  readonly outageTimeout: number
  readonly label: string
  readonly replicas: Readonly<Required<Replicas>> | undefined
}

/** One call, with all defaults filled in. */
export interface CallTerms {
  readonly timeout: number | undefined
  readonly signal: AbortSignal | undefined
  readonly lease: number
  readonly renew: boolean
  readonly maxHold: number
  readonly fair: boolean
  /** Undefined: it does not join the queue later. */
  readonly fairAfter: number | undefined
  readonly headStart: number
  readonly owner: string | undefined
  readonly label: string
  /** As in a claim. */
  readonly wants: string | undefined
}

type Check = (name: string, value: unknown) => void

function duration(least: number): Check {
  return (name, value) => {
    if (typeof value !== 'number' || !(value >= least && value <= LONGEST)) {
      throw new LockArgumentError(name, value, `a number of milliseconds from ${least} to ${LONGEST}`)
    }
  }
}

const durationOrNever: Check = (name, value) => {
  if (value === Number.POSITIVE_INFINITY) return
  if (typeof value !== 'number' || !(value >= 0 && value <= LONGEST)) {
    throw new LockArgumentError(name, value, `a number of milliseconds from 0 to ${LONGEST}, or Infinity`)
  }
}

function text(least: number): Check {
  return (name, value) => {
    if (typeof value !== 'string' || !value.isWellFormed() || value.length < least || Buffer.byteLength(value) > 1024) {
      throw new LockArgumentError(name, value, `a string of ${least} to 1024 UTF-8 bytes`)
    }
  }
}

const flag: Check = (name, value) => {
  if (typeof value !== 'boolean') throw new LockArgumentError(name, value, 'true or false')
}

const abortSignal: Check = (name, value) => {
  if (!(value instanceof AbortSignal)) throw new LockArgumentError(name, value, 'an AbortSignal')
}

const atLeastOne: Check = (name, value) => {
  if (!Number.isInteger(value) || !((value as number) >= 1)) {
    throw new LockArgumentError(name, value, 'a whole number, at least 1')
  }
}

const replicaChecks: Record<keyof Replicas, Check> = { min: atLeastOne, timeout: duration(1), fsync: flag }

const lockChecks: Record<keyof LockOptions, Check> = {
  timeout: duration(0),
  signal: abortSignal,
  lease: duration(1),
  renew: flag,
  maxHold: duration(1),
  fair: flag,
  fairAfter: durationOrNever,
  headStart: duration(0),
  owner: text(1),
  label: text(0),
}

const clientChecks: Record<keyof ClientOptions, Check> = {
  prefix: text(1),
  lease: duration(1),
  waiterTtl: duration(1),
  tokenMemory: duration(0),
  fair: flag,
  fairAfter: durationOrNever,
  timeout: duration(0),
  outageTimeout: duration(1),
  label: text(0),
  replicas: (name, value) => check(name, value, replicaChecks),
}

const closeChecks: Record<keyof CloseOptions, Check> = { drain: duration(0) }

/** Of a semaphore that has so many. */
function permitsOf(most: number): Check {
  return (name, value) => {
    if (!Number.isInteger(value) || !((value as number) >= 1 && (value as number) <= most)) {
      throw new LockArgumentError(
        name,
        value,
        `a whole number from 1 to ${most}, the number of permits of the semaphore`,
      )
    }
  }
}

/** Checks every option that is there; those that are undefined count as absent. */
function check(what: string, options: unknown, checks: Readonly<Record<string, Check>>): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new LockArgumentError(what, options, 'an object')
  }
  for (const name of Object.keys(options)) {
    const value: unknown = options[name as keyof typeof options]
    const known = Object.hasOwn(checks, name) ? checks[name] : undefined
    if (!known) throw new LockArgumentError(name, value, `one of the options ${Object.keys(checks).join(', ')}`)
    if (value !== undefined) known(name, value)
  }
}

export function checkKey(key: unknown): asserts key is string {
  text(1)('key', key)
}

export function checkOwner(owner: unknown): asserts owner is string {
  text(1)('owner', owner)
}

/** Of a holder. Scripts look for it among the fields of a lock, so it must be the name of no other. */
export function checkId(id: unknown): void {
  if (typeof id !== 'string' || !/^[\w-]{28}$/.test(id)) {
    throw new LockArgumentError('id', id, 'the id of a holder, as `inspect` returns it')
  }
}

export function checkPermits(permits: unknown): asserts permits is number {
  if (!Number.isSafeInteger(permits) || (permits as number) < 1) {
    throw new LockArgumentError('permits', permits, `a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`)
  }
}

export function checkRenewal(ms: unknown): asserts ms is number {
  duration(1)('ms', ms)
}

/** How long `close` waits for those who hold, in ms. */
export function drainOf(options: CloseOptions): number {
  check('options', options, closeChecks)
  return options.drain ?? 0
}

/** The client's options with their defaults, frozen. */
export function settingsOf(options: ClientOptions): Settings {
  check('options', options, clientChecks)
  const outageTimeout = options.outageTimeout ?? 15_000
  return Object.freeze({
    prefix: options.prefix ?? 'lock',
    lease: Math.floor(options.lease ?? 30_000),
    waiterTtl: Math.ceil(options.waiterTtl ?? 10_000),
    tokenMemory: Math.ceil(options.tokenMemory ?? 600_000),
    fair: options.fair ?? false,
    fairAfter: options.fairAfter ?? 1_000,
    timeout: options.timeout,
    outageTimeout,
    label: options.label ?? `${hostname()}:${process.pid}`,
    replicas: options.replicas && replicasOf(options.replicas, outageTimeout),
  })
}

function replicasOf({ min, timeout, fsync = false }: Replicas, outageTimeout: number): Readonly<Required<Replicas>> {
  for (const [name, value] of Object.entries({ min, timeout })) {
    if (value === undefined) throw new LockArgumentError(`replicas.${name}`, value, 'a number')
  }
  // A connection that is silent for a third of it, and 5 s at the most, is torn down.
  const most = Math.min(outageTimeout, 15_000) / 4
  if (timeout > most)
    throw new LockArgumentError(
      'replicas.timeout',
      timeout,
      `at most ${most}: a quarter of outageTimeout, and no more than 3750`,
    )
  return Object.freeze({ min, timeout: Math.ceil(timeout), fsync })
}

/** A call's options with the client's defaults. `permits`: how many the semaphore has that is called; undefined: it is none. */
export function callTermsOf(options: SemaphoreOptions, settings: Settings, permits?: number): CallTerms {
  check('options', options, permits === undefined ? lockChecks : { ...lockChecks, permits: permitsOf(permits) })
  const fair = options.fair ?? settings.fair
  const after = options.fairAfter ?? settings.fairAfter
  const fairAfter = fair || after === Number.POSITIVE_INFINITY ? undefined : after
  if (options.headStart !== undefined && !fair && fairAfter === undefined) {
    const accepted = 'no headStart without fair: true or a finite fairAfter, because only the queue has an order'
    throw new LockArgumentError('headStart', options.headStart, accepted)
  }
  return {
    timeout: options.timeout ?? settings.timeout,
    signal: options.signal,
    lease: Math.floor(options.lease ?? settings.lease),
    renew: options.renew ?? options.lease === undefined,
    maxHold: options.maxHold ?? Number.POSITIVE_INFINITY,
    fair,
    fairAfter,
    headStart: options.headStart ?? 0,
    owner: options.owner,
    label: options.label ?? settings.label,
    wants: permits === undefined ? undefined : `${options.permits ?? 1}/${permits}`,
  }
}

/** The options of a client and of a call: their types, their defaults and their validation. */
import { hostname } from 'node:os'
import { isMainThread, threadId } from 'node:worker_threads'
import { LONGEST } from './clock.ts'
import { LockArgumentError } from './errors.ts'

/**
 * Options of one call of `lock`, `tryLock`, `using` or `wrap`. Times are in ms. An option whose value is undefined
 * counts as absent.
 * @since 0.1.0
 */
export interface LockOptions {
  /**
   * The longest time to wait, in ms. After this time, `lock` rejects with LockTimeoutError, and `tryLock` resolves to
   * null. With `0`, the call makes a single attempt. With `Infinity`, the call waits without limit.
   * @defaultValue the client's `timeout`. If the client has none either, `lock` waits without limit and `tryLock` makes
   *   a single attempt
   * @since 0.1.0
   */
  timeout?: number | undefined
  /**
   * Aborting this signal rejects the call at once with `signal.reason`. Any number of calls may share one signal.
   * @defaultValue none
   * @since 0.1.0
   */
  signal?: AbortSignal | undefined
  /**
   * The length of the lease, in ms. If this option is given, the lease is renewed only if `renew` is true. With a short
   * lease, a crashed holder blocks others for less time. With a long lease, there are fewer renewals, and the hold
   * survives a longer pause of its process.
   * @defaultValue the client's `lease`, and the lease is renewed automatically
   * @since 0.1.0
   */
  lease?: number | undefined
  /**
   * Whether the lease is renewed automatically, each time a third of its length has passed.
   * @defaultValue `false` if the option `lease` is given, otherwise `true`
   * @since 0.1.0
   */
  renew?: boolean | undefined
  /**
   * Automatic renewal stops this many ms after the grant, so that a hung job cannot hold the lock forever.
   * @defaultValue none: renewal does not stop
   * @since 0.1.0
   */
  maxHold?: number | undefined
  /**
   * If true, a queue in Redis serves callers in the order in which they ask. If false, the first caller to ask after a
   * release gets the lock, which is faster under contention. Such an unfair caller joins the queue when it has waited
   * for `fairAfter` ms.
   * @defaultValue the client's `fair`
   * @since 0.1.0
   */
  fair?: boolean | undefined
  /**
   * With `fair: false`, a caller that has waited this many ms joins the fair queue, so no caller waits for ever. With
   * `Infinity`, the caller never joins the queue, and other callers may overtake it without limit.
   * @defaultValue the client's `fairAfter`
   * @since 0.1.0
   */
  fairAfter?: number | undefined
  /**
   * The fair queue orders this call as if it had been made this many ms earlier. So the call overtakes only waiters
   * that have waited for less than this time. If the call is unfair, the option takes effect when the call joins the
   * queue. An unfair call with `fairAfter: Infinity` never joins the queue, so with a `headStart` it rejects with
   * LockArgumentError.
   * @defaultValue `0`
   * @since 0.1.0
   */
  headStart?: number | undefined
  /**
   * The identity of the caller, of 1 to 1024 UTF-8 bytes. If the owner already holds the lock, a call with the same
   * owner re-enters, also from another process.
   * @defaultValue the owner set by `runAs`, or by a surrounding `locks.using(key, …)` of the same key; otherwise each
   *   call has an identity of its own
   * @since 0.1.0
   */
  owner?: string | undefined
  /**
   * A label for this call, of at most 1024 UTF-8 bytes. While the call waits or holds, other clients see the label in
   * `inspect` and in timeout errors.
   * @defaultValue the client's `label`
   * @since 0.2.0
   */
  label?: string | undefined
  /**
   * The number of waiting callers from which on no more may wait: if so many are in the fair queue already, the call
   * rejects with LockQueueFullError at once, unless the lock is free or the call re-enters. `0`: the call never waits.
   * With this option the call joins the queue at once, as with `fair: true`, so the server decides. A single attempt
   * never waits, so the option has no effect on it.
   * @defaultValue none: any number of callers may wait
   * @since 0.2.0
   */
  maxWaiters?: number | undefined
  /**
   * For how many ms from the grant the lock stays taken at least, even if the lease is released earlier, or its process
   * ends. For its caller, a released hold is over: `release` resolves at once, nothing renews the hold, and its owner
   * does not re-enter. `forceRelease` ends it. May be longer than the lease. Re-entries do not change it.
   * @defaultValue `0`
   * @since 0.2.0
   */
  minHold?: number | undefined
  /**
   * If true, and the call's expected wait is longer than its `timeout`, the call ends at once, as if the timeout had
   * passed: `lock` rejects with LockTimeoutError, and `tryLock` resolves to null. The wait is estimated from the last
   * holds that ended while callers were queued; if these are fewer than 8, the call waits. The call joins the fair queue
   * at once, as with `fair: true`, because only there it has a place. Without a `timeout`, the option has no effect.
   * @defaultValue `false`
   * @since 0.2.0
   */
  rejectLate?: boolean | undefined
}

/**
 * Options of one call on a semaphore.
 * @since 0.2.0
 */
export interface SemaphoreOptions extends LockOptions {
  /**
   * How many permits this call takes, from 1 to the number of permits of the semaphore.
   * @defaultValue `1`
   * @since 0.2.0
   */
  permits?: number | undefined
  /**
   * The group whose turn this call takes, of 1 to 1024 UTF-8 bytes: a tenant, for instance. The groups of a semaphore
   * take turns, by their weights, and inside a group calls are served in the order in which they ask. A call with a group
   * joins the queue at once, so `fair` and `fairAfter` have no effect; a single attempt is granted only if it would be
   * first.
   * @defaultValue none: the calls without a group take turns with the groups, as one more group
   * @since 0.2.0
   */
  group?: string | undefined
  /**
   * How many permits the group may have at a time, at least the `permits` of this call. If the group has no room for its
   * first waiter, the other waiters of the group wait too, and all other calls pass them. Each call is limited by the
   * number that it gives.
   * @defaultValue none: the group may have all permits
   * @since 0.2.0
   */
  groupLimit?: number | undefined
  /**
   * How many permits the group gets for each permit of a group of weight 1, while both have waiters. A finite number above
   * 0; a weight below 1e-6 or above 1e6 counts as that number. The newest weight counts for the whole group.
   * @defaultValue the weight that the group has; `1` if no call has given one
   * @since 0.2.0
   */
  groupWeight?: number | undefined
  /**
   * If true, the lease has the numbers of its permits, `lease.slots`: the smallest from 0 that no other live hold with
   * this option has. They are less than the number of permits that this call gives for the semaphore.
   * @defaultValue `false`: the permits have no numbers, and reserve none
   * @since 0.2.0
   */
  slots?: boolean | undefined
}

/**
 * Options of `LockClient.close`. An option whose value is undefined counts as absent.
 * @since 0.2.0
 */
export interface CloseOptions {
  /**
   * How many ms holders get to release their locks before `close` ends all holds. The leases are renewed meanwhile.
   * @defaultValue `0`
   * @since 0.2.0
   */
  drain?: number | undefined
}

/**
 * Options of a LockClient. Times are in ms. An option whose value is undefined counts as absent.
 * @since 0.1.0
 */
export interface ClientOptions {
  /**
   * The first part of every key and channel in Redis. Clients share locks only if they have the same prefix.
   * @defaultValue `'lock'`
   * @since 0.1.0
   */
  prefix?: string | undefined
  /**
   * The length of the lease of calls without the option `lease`, in ms. The lease is renewed automatically, each time a
   * third of its length has passed.
   * @defaultValue `30_000`
   * @since 0.1.0
   */
  lease?: number | undefined
  /**
   * How long a waiter stays in the fair queue without a heartbeat, in ms. Its client sends a heartbeat after each third
   * of that time. If the process of a waiter dies, the waiter can delay others for up to `waiterTtl`. If a message to a
   * waiter is lost, this is noticed within a third of `waiterTtl`.
   * @defaultValue `10_000`
   * @since 0.1.0
   */
  waiterTtl?: number | undefined
  /**
   * How many ms Redis keeps the token clock of a free lock after the lock's last use. The token clock is a number in
   * Redis that makes each new fencing token of the lock larger than the earlier ones.
   * @defaultValue `600_000`
   * @since 0.1.0
   */
  tokenMemory?: number | undefined
  /**
   * The default of the call option with the same name.
   * @defaultValue `false`
   * @since 0.1.0
   */
  fair?: boolean | undefined
  /**
   * The default of the call option with the same name, in ms. With `Infinity`, unfair callers never join the queue.
   * @defaultValue `50`
   * @since 0.1.0
   */
  fairAfter?: number | undefined
  /**
   * The default of the call option with the same name, in ms. With `Infinity`, calls wait without limit.
   * @defaultValue none
   * @since 0.1.0
   */
  timeout?: number | undefined
  /**
   * How many ms a pending call tolerates an unreachable Redis before it rejects with LockConnectionError.
   * @defaultValue `15_000`
   * @since 0.1.0
   */
  outageTimeout?: number | undefined
  /**
   * The label of calls without the option `label`, of at most 1024 UTF-8 bytes. While such a call waits or holds, other
   * clients see the label in `inspect` and in timeout errors.
   * @defaultValue `host:pid`, in a worker thread `host:pid/threadId`
   * @since 0.1.0
   */
  label?: string | undefined
  /**
   * How many replicas must have a grant before the call gets its lease.
   * @defaultValue none: it is enough that the master has the grant
   * @since 0.1.0
   */
  replicas?: Replicas | undefined
}

/**
 * How many replicas must have a grant before the call gets its lease. The same number of replicas must have each
 * renewal of the lease. If too few replicas have a grant in time, the grant is undone and the call continues to wait.
 * After at most `outageTimeout` ms, the call rejects with LockConnectionError. A call that makes a single attempt
 * rejects at once.
 * @since 0.1.0
 */
export interface Replicas {
  /** How many replicas must confirm a grant or a renewal: at least 1. @since 0.1.0 */
  min: number
  /**
   * How long to wait for the replicas after each grant or renewal, in ms. The value may be at most a quarter of
   * `outageTimeout`, and at most 3,750.
   * @since 0.1.0
   */
  timeout: number
  /**
   * Whether the replicas must also have written the grant or the renewal to disk. This requires a server with the
   * command WAITAOF, and replicas with an append-only file.
   * @defaultValue `false`
   * @since 0.1.0
   */
  fsync?: boolean | undefined
}

/**
 * A client's options with all defaults filled in. The options `timeout` and `replicas` have no default, and may be
 * undefined.
 */
export interface Settings {
  readonly prefix: string
  readonly lease: number
  readonly waiterTtl: number
  readonly tokenMemory: number
  readonly fair: boolean
  /** After how many ms an unfair caller joins the queue; Infinity if it never joins. */
  readonly fairAfter: number
  readonly timeout: number | undefined
  readonly outageTimeout: number
  readonly label: string
  readonly replicas: Readonly<Required<Replicas>> | undefined
}

/** The options of one call with all defaults filled in. */
export interface CallTerms {
  readonly timeout: number | undefined
  readonly signal: AbortSignal | undefined
  readonly lease: number
  readonly renew: boolean
  readonly maxHold: number
  readonly fair: boolean
  /** After how many ms the call joins the queue; undefined if it joins at once (`fair`), or never. */
  readonly fairAfter: number | undefined
  readonly headStart: number
  readonly owner: string | undefined
  readonly label: string
  /** How much of the lock the call wants, in the format of `Claim.wants`. */
  readonly wants: string | undefined
  readonly maxWaiters: number | undefined
  /** In whole ms; undefined: 0. */
  readonly minHold: number | undefined
  readonly rejectLate: boolean
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

/** The most bytes that a key, an owner or a label may have, in UTF-8. No character of a JavaScript string needs more than 3. */
const MOST_BYTES = 1024

function isText(value: unknown, least: number): value is string {
  if (typeof value !== 'string' || value.length < least || !value.isWellFormed()) return false
  return value.length * 3 <= MOST_BYTES || Buffer.byteLength(value) <= MOST_BYTES
}

function text(least: number): Check {
  return (name, value) => {
    if (!isText(value, least))
      throw new LockArgumentError(name, value, `a string of ${least} to ${MOST_BYTES} UTF-8 bytes`)
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

const count: Check = (name, value) => {
  if (!Number.isSafeInteger(value) || !((value as number) >= 0)) {
    throw new LockArgumentError(name, value, 'a whole number, at least 0')
  }
}

const lockChecks: Record<keyof LockOptions, Check> = {
  timeout: durationOrNever,
  signal: abortSignal,
  lease: duration(1),
  renew: flag,
  maxHold: duration(1),
  fair: flag,
  fairAfter: durationOrNever,
  headStart: duration(0),
  owner: text(1),
  label: text(0),
  maxWaiters: count,
  minHold: duration(0),
  rejectLate: flag,
}

const clientChecks: Record<keyof ClientOptions, Check> = {
  prefix: text(1),
  lease: duration(1),
  waiterTtl: duration(1),
  tokenMemory: duration(0),
  fair: flag,
  fairAfter: durationOrNever,
  timeout: durationOrNever,
  outageTimeout: duration(1),
  label: text(0),
  replicas: (name, value) => check(name, value, replicaChecks),
}

export const clientOptionNames: readonly string[] = Object.keys(clientChecks)

/** The options of groups, which only a semaphore has. */
type GroupOption = 'group' | 'groupLimit' | 'groupWeight'

const noGroup: Check = (name, value) => {
  throw new LockArgumentError(
    name,
    value,
    'no such option: only a semaphore has groups; semaphore(key, 1) is a lock with them',
  )
}
const noGroups: Record<GroupOption, Check> = { group: noGroup, groupLimit: noGroup, groupWeight: noGroup }

const groupChecks: Record<GroupOption, Check> = {
  group: text(1),
  groupLimit: atLeastOne,
  groupWeight: (name, value) => {
    if (typeof value !== 'number' || !(value > 0 && value < Number.POSITIVE_INFINITY)) {
      throw new LockArgumentError(name, value, 'a finite number above 0')
    }
  },
}

const closeChecks: Record<keyof CloseOptions, Check> = { drain: duration(0) }

/** Returns the check of a call's `permits`, for a semaphore with `most` permits. */
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

/** How other libraries name an option, and its name here. */
const alike: readonly (readonly [RegExp, string])[] = [
  [/^(time|retr|wait|max_?wait|acquire_?[ta])/i, 'timeout'],
  [/^(ttl|px|expir|duration|lease|lock_?t)/i, 'lease'],
  [/^(refresh|extend|auto)/i, 'renew'],
  [/^identifier/i, 'owner'],
]

/**
 * Checks every option that is present. An option that is undefined counts as absent. `refused`: options that the message
 * does not list, because they are always wrong here.
 */
function check(
  what: string,
  options: unknown,
  checks: Readonly<Record<string, Check>>,
  refused: Readonly<Record<string, Check>> = {},
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new LockArgumentError(what, options, 'an object')
  }
  for (const name of Object.keys(options)) {
    const value: unknown = options[name as keyof typeof options]
    const known = Object.hasOwn(checks, name) ? checks[name] : Object.hasOwn(refused, name) ? refused[name] : undefined
    if (!known) {
      const ours = alike.find(([others, own]) => others.test(name) && Object.hasOwn(checks, own))?.[1]
      const which = ours ? `\`${ours}\`, or another of` : 'only'
      throw new LockArgumentError(name, value, `${which} these options: ${Object.keys(checks).join(', ')}`)
    }
    if (value !== undefined) known(name, value)
  }
}

export function isKey(key: unknown): key is string {
  return isText(key, 1)
}

export function checkKey(key: unknown): asserts key is string {
  text(1)('key', key)
}

export function checkFn(fn: unknown): void {
  if (typeof fn !== 'function') throw new LockArgumentError('fn', fn, 'a function')
}

export function checkOwner(owner: unknown): asserts owner is string {
  text(1)('owner', owner)
}

/**
 * Checks the id of a holder. A script uses the id as the name of a hash field, so the id must not equal the name of
 * another field of that hash.
 */
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

/** Checks the options of `close`. Returns how many ms `close` gives holders to release their locks. */
export function drainOf(options: CloseOptions): number {
  check('options', options, closeChecks)
  return options.drain ?? 0
}

/** Returns the client's options with their defaults, frozen. */
export function settingsOf(options: ClientOptions): Settings {
  check('options', options, clientChecks)
  const outageTimeout = options.outageTimeout ?? 15_000
  return Object.freeze({
    prefix: options.prefix ?? 'lock',
    lease: Math.floor(options.lease ?? 30_000),
    waiterTtl: Math.ceil(options.waiterTtl ?? 10_000),
    tokenMemory: Math.ceil(options.tokenMemory ?? 600_000),
    fair: options.fair ?? false,
    fairAfter: options.fairAfter ?? 50,
    timeout: options.timeout,
    outageTimeout,
    label: options.label ?? `${hostname()}:${process.pid}${isMainThread ? '' : `/${threadId}`}`,
    replicas: options.replicas && replicasOf(options.replicas, outageTimeout),
  })
}

function replicasOf({ min, timeout, fsync = false }: Replicas, outageTimeout: number): Readonly<Required<Replicas>> {
  for (const [name, value] of Object.entries({ min, timeout })) {
    if (value === undefined) throw new LockArgumentError(`replicas.${name}`, value, 'a number')
  }
  // If a connection gives no answer for a third of `outageTimeout`, or for 5 s if that is shorter, it counts as dead.
  // The replicas must answer sooner than that.
  const most = Math.min(outageTimeout, 15_000) / 4
  if (timeout > most)
    throw new LockArgumentError(
      'replicas.timeout',
      timeout,
      `at most ${most} ms: a quarter of outageTimeout, and never more than 3750 ms`,
    )
  return Object.freeze({ min, timeout: Math.ceil(timeout), fsync })
}

/**
 * Returns a call's options, completed with the client's defaults. `permits`: how many permits the semaphore has;
 * undefined for other kinds of lock.
 */
export function callTermsOf(options: SemaphoreOptions, settings: Settings, permits?: number): CallTerms {
  if (permits === undefined) check('options', options, lockChecks, noGroups)
  else check('options', options, { ...lockChecks, permits: permitsOf(permits), slots: flag, ...groupChecks })
  const { group, maxWaiters, minHold, rejectLate = false, slots } = options
  const timeout = options.timeout ?? settings.timeout
  // These options are about a place in the queue.
  const placed = group !== undefined || maxWaiters !== undefined || (rejectLate && timeout !== undefined)
  const fair = placed || (options.fair ?? settings.fair)
  const after = options.fairAfter ?? settings.fairAfter
  const fairAfter = fair || after === Number.POSITIVE_INFINITY ? undefined : after
  if (options.headStart !== undefined && !fair && fairAfter === undefined) {
    const accepted = 'headStart only with fair: true or a finite fairAfter, because only the fair queue has an order'
    throw new LockArgumentError('headStart', options.headStart, accepted)
  }
  return {
    timeout,
    signal: options.signal,
    lease: Math.floor(options.lease ?? settings.lease),
    renew: options.renew ?? options.lease === undefined,
    maxHold: options.maxHold ?? Number.POSITIVE_INFINITY,
    fair,
    fairAfter,
    headStart: options.headStart ?? 0,
    owner: options.owner,
    label: options.label ?? settings.label,
    wants:
      permits === undefined
        ? undefined
        : `${options.permits ?? 1}/${permits}${slots ? 's' : ''}${groupTermsOf(options)}`,
    maxWaiters,
    minHold: minHold ? Math.ceil(minHold) : undefined,
    rejectLate,
  }
}

/** The largest and the smallest weight of a group: with larger differences, numbers of turns would lose their last digits. */
const MOST_WEIGHT = 1e6

/** Returns what a call says about its group, as the end of `Claim.wants` (src/kinds/claim.ts). */
function groupTermsOf({ permits = 1, group, groupLimit, groupWeight }: SemaphoreOptions): string {
  if (group === undefined) {
    for (const [name, value] of Object.entries({ groupLimit, groupWeight })) {
      if (value !== undefined) throw new LockArgumentError(name, value, `no ${name} without the option group`)
    }
    return ''
  }
  if (groupLimit !== undefined && groupLimit < permits) {
    throw new LockArgumentError(
      'groupLimit',
      groupLimit,
      `a whole number, at least ${permits}, the permits of this call`,
    )
  }
  const weight = groupWeight && Math.min(Math.max(groupWeight, 1 / MOST_WEIGHT), MOST_WEIGHT)
  return `;${groupLimit ?? ''};${weight ?? ''};${encodeURIComponent(group)}`
}

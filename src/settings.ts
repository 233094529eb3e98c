/** What the options say: checks them, and fills in the defaults. */
import { hostname } from 'node:os'
import { isMainThread, threadId } from 'node:worker_threads'
import { LONGEST } from './clock.ts'
import { LockArgumentError } from './errors.ts'
import type { ClientOptions, CloseOptions, LockOptions, Replicas, SemaphoreOptions } from './options.ts'

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

/** Checks a key, an owner or a label. `least`: how many characters it has at least. */
export function checkText(name: string, value: unknown, least = 1): asserts value is string {
  if (typeof value === 'string' && value.length >= least && value.isWellFormed())
    if (value.length * 3 <= MOST_BYTES || Buffer.byteLength(value) <= MOST_BYTES) return
  const several = Array.isArray(value) ? '; several locks are taken together by all(keys)' : ''
  throw new LockArgumentError(name, value, `a string of ${least} to ${MOST_BYTES} UTF-8 bytes${several}`)
}

const text =
  (least: number): Check =>
  (name, value) =>
    checkText(name, value, least)

const flag: Check = (name, value) => {
  if (typeof value !== 'boolean') throw new LockArgumentError(name, value, 'true or false')
}

const abortSignal: Check = (name, value) => {
  // In Jest with jsdom, a signal that Node has made is no instance of the global AbortSignal.
  const { aborted, addEventListener } = Object(value) as Partial<AbortSignal>
  if (typeof aborted !== 'boolean' || typeof addEventListener !== 'function')
    throw new LockArgumentError(name, value, 'an AbortSignal')
}

/** Numbers above `most` would lose digits: a script receives them, and stores them, as text. */
function whole(least: number, most = Number.MAX_SAFE_INTEGER, what = ''): Check {
  return (name, value) => {
    if (!Number.isSafeInteger(value) || !((value as number) >= least && (value as number) <= most)) {
      throw new LockArgumentError(name, value, `a whole number from ${least} to ${most}${what}`)
    }
  }
}

const replicaChecks: Record<keyof Replicas, Check> = { min: whole(1), timeout: duration(1), fsync: flag }

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
  maxWaiters: whole(0),
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
  groupLimit: whole(1),
  groupWeight: (name, value) => {
    if (typeof value !== 'number' || !(value > 0 && value < Number.POSITIVE_INFINITY)) {
      throw new LockArgumentError(name, value, 'a finite number above 0')
    }
  },
}

const closeChecks: Record<keyof CloseOptions, Check> = { drain: duration(0) }

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
    const times = ['lease', 'timeout', 'drain'].filter(name => Object.hasOwn(checks, name))
    const meant = typeof options === 'number' ? `: ${times.map(name => `{ ${name}: ${options} }`).join(' or ')}` : ''
    throw new LockArgumentError(what, options, `an object${meant}`)
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

export function checkFn(fn: unknown): void {
  if (typeof fn !== 'function') throw new LockArgumentError('fn', fn, 'a function, as the last argument')
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
  whole(1)('permits', permits)
}

export function checkRenewal(ms: unknown): asserts ms is number {
  duration(1)('ms', ms)
}

/** Checks a lease against the longest one that the kind of lock allows (`Kind.longestLease`). */
export function checkLongest(name: string, ms: number, longest: number | undefined): void {
  if (longest === undefined || ms <= longest) return
  const why = "a quorum's servers have to know the longest lease: set it for the client"
  throw new LockArgumentError(name, ms, `at most ${longest}, the client's option \`lease\`; ${why}`)
}

/** Checks the options of `close`. Returns how many ms `close` gives holders to release their locks. */
export function drainOf(options: CloseOptions): number {
  check('options', options, closeChecks)
  return options.drain ?? 0
}

/** The defaults of a client's options. */
export const defaults = {
  prefix: 'lock',
  lease: 30_000,
  waiterTtl: 10_000,
  tokenMemory: 600_000,
  fair: false,
  fairAfter: 50,
  outageTimeout: 15_000,
} as const

/** Returns the client's options with their defaults, frozen. */
export function settingsOf(options: ClientOptions): Settings {
  check('options', options, clientChecks)
  const outageTimeout = options.outageTimeout ?? defaults.outageTimeout
  return Object.freeze({
    prefix: options.prefix ?? defaults.prefix,
    lease: Math.floor(options.lease ?? defaults.lease),
    waiterTtl: Math.ceil(options.waiterTtl ?? defaults.waiterTtl),
    tokenMemory: Math.ceil(options.tokenMemory ?? defaults.tokenMemory),
    fair: options.fair ?? defaults.fair,
    fairAfter: options.fairAfter ?? defaults.fairAfter,
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
  else
    check('options', options, {
      ...lockChecks,
      permits: whole(1, permits, ', the number of permits of the semaphore'),
      slots: flag,
      ...groupChecks,
    })
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

/** The next request of a process: a random mix of all kinds, modes, leases, timeouts and ways to give up. */
import type { LockOptions } from '../../../src/index.ts'
import type { Random } from '../../kit/random.ts'
import type { Mode } from '../events.ts'
import { groupOf, type Wants } from '../wants.ts'
import { usualWants } from './lock-for.ts'
import { kindOf, sizeOf, type Terms, type Times } from './terms.ts'

/** A lock that a call requests. `wants` is the mode or the permits that the call requests; undefined for a mutex. */
export interface Part {
  readonly key: string
  readonly wants: Wants | undefined
}

export interface Choice extends Part {
  /** Other locks that the call takes together with this lock; usually none. */
  readonly besides: readonly Part[]
  readonly mode: Mode
  readonly try: boolean
  readonly options: LockOptions
  /** The requested lease, in ms. */
  readonly lease: number
  /** The caller aborts the call after this many ms. */
  readonly abortAfter: number | undefined
  /** How long the caller holds the lock, in ms. */
  readonly hold: number
  /**
   * Whether to make two concurrent calls with the same owner and without a timeout. When one of them gets the lock, so
   * does the other.
   */
  readonly twice: boolean
  /**
   * Whether to take the same lock again inside the hold. For a read-write lock, `read` and `write` say in which mode.
   */
  readonly reenter: 'same' | 'read' | 'write' | undefined
  readonly renew: boolean
  /** The call has to settle within this many ms. Undefined means that it has unlimited time. */
  readonly patience: number | undefined
  /** Pause before the next call, in ms. */
  readonly pause: number
}

/** How long each hold of `chooseAgain` lasts, in ms. */
const LOOPED_HOLD = 25

/** The number of keys that share half of all calls, so that their queues become long. */
const HOT = 4

export function choose(random: Random, { keys, times }: Pick<Terms, 'keys' | 'times'>): Choice {
  const hot = () => keys[random.int(0, Math.min(HOT, keys.length) - 1)]!
  const key = random.chance(0.5) ? hot() : random.pick(keys)
  const wants = chooseWants(random, key)
  const asked: Mode = random.weighted({ fair: 48, unfair: 24, fairAfter: 16, once: 12 })
  // A call with a group joins the queue at once.
  const mode = groupOf(wants) !== '' && asked !== 'once' ? 'fair' : asked
  const others = random.chance(0.08) ? [hot(), random.pick(keys)].filter(other => other !== key) : []
  const besides = [...new Set(others)].map(other => ({ key: other, wants: chooseOne(random, other) }))
  // If an owner makes two concurrent calls, one gets the lock and the other re-enters. A semaphore has no re-entry.
  // There, the second call might wait until the first hold is released, but the caller releases it only after both
  // calls are granted.
  const twice = mode !== 'once' && besides.length === 0 && kindOf(key) !== 'semaphore' && random.chance(0.04)
  const timeout =
    mode !== 'once' && !twice && random.chance(0.65) ? random.int(20, random.chance(0.5) ? 300 : 4_000) : undefined
  const { options: lease, length } = chooseLease(random, times)
  const options: LockOptions = { ...lease }
  if (mode === 'fair') options.fair = true
  if (mode === 'unfair') options.fairAfter = Number.POSITIVE_INFINITY
  if (mode === 'fairAfter') options.fairAfter = random.int(0, 500)
  if (mode === 'fair' && random.chance(0.1)) options.headStart = random.int(1, 1_000)
  if (besides.length === 0 && random.chance(0.04)) options.minHold = random.int(50, 800)
  if (timeout !== undefined) options.timeout = timeout
  if (mode === 'once' && random.chance(0.5)) options.timeout = 0
  return {
    key,
    // A call for several locks has only one option `permits`, which applies to all its semaphores. So such a call
    // requests one permit of each semaphore.
    wants: besides.length > 0 ? chooseOne(random, key) : wants,
    besides,
    mode,
    try: mode === 'once' || (timeout !== undefined && random.chance(0.3)),
    options,
    lease: length,
    abortAfter: !twice && random.chance(0.08) ? random.int(0, 400) : undefined,
    hold: chooseHold(random, key, length),
    twice,
    reenter: besides.length === 0 ? chooseReentry(random, wants) : undefined,
    renew: random.chance(0.05),
    // A call without a timeout may wait for an unlimited time, because the lock may be busy. A call that makes only a
    // single attempt waits only while the server is away, and at most for outageTimeout.
    patience: timeout ?? (mode === 'once' ? times.outageTimeout : undefined),
    pause: random.int(0, 120),
  }
}

/** Chooses the mode or the permits that a call requests. Most callers of a semaphore agree on its number of permits. */
function chooseWants(random: Random, key: string): Wants | undefined {
  const one = chooseOne(random, key)
  if (typeof one !== 'object') return one
  const of = Math.max(1, sizeOf(key) + (random.chance(0.1) ? random.pick([-1, 1]) : 0))
  const permits = random.chance(0.6) ? 1 : random.int(1, of)
  if (random.chance(0.6)) return [permits, of]
  const group = random.pick(['a', 'b', 'c'])
  const limit = Math.max(permits, Math.ceil(sizeOf(key) / 2))
  return random.chance(0.5) ? [permits, of, group, limit] : [permits, of, group]
}

function chooseOne(random: Random, key: string): Wants | undefined {
  return kindOf(key) === 'readWrite' && random.chance(0.65) ? 'read' : usualWants(key)
}

/**
 * Chooses how long a caller holds the lock, in ms. Locks that several callers may hold at once are held longer, because
 * otherwise they would almost always be free.
 */
function chooseHold(random: Random, key: string, lease: number): number {
  if (random.chance(0.02)) return random.int(lease, lease + 400)
  const often = kindOf(key) === 'mutex' ? 0.6 : 0.2
  return random.chance(often) ? random.int(0, 3) : random.int(3, kindOf(key) === 'mutex' ? 50 : 100)
}

function chooseReentry(random: Random, wants: Wants | undefined): Choice['reenter'] {
  if (typeof wants === 'object') return undefined
  if (wants === undefined) return random.chance(0.05) ? 'same' : undefined
  return random.chance(0.15) ? random.pick(['read', 'write']) : undefined
}

/** Returns the request of a caller that constantly wants the same lock and never queues. */
export function chooseAgain(key: string, { lease }: Times): Choice {
  return {
    key,
    wants: undefined,
    besides: [],
    mode: 'unfair',
    try: false,
    options: {},
    lease,
    abortAfter: undefined,
    hold: LOOPED_HOLD,
    reenter: undefined,
    renew: false,
    patience: undefined,
    pause: 0,
    twice: false,
  }
}

function chooseLease(random: Random, times: Times): { options: LockOptions; length: number } {
  const length = random.int(300, times.longestLease)
  const kind = random.weighted({ fixed: 45, renewed: 35, default: 15, capped: 5 })
  if (kind === 'default') return { options: {}, length: times.lease }
  if (kind === 'fixed') return { options: { lease: length }, length }
  if (kind === 'renewed') return { options: { lease: length, renew: true }, length }
  return { options: { lease: length, renew: true, maxHold: random.int(1, length) }, length }
}

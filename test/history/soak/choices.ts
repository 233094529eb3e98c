/** What a process asks for next: all kinds, modes, leases, patiences and manners, mixed. */
import type { LockOptions } from '../../../src/index.ts'
import type { Random } from '../../kit/random.ts'
import type { Mode } from '../events.ts'
import type { Wants } from '../wants.ts'
import { usualWants } from './lock-for.ts'
import { kindOf, sizeOf, type Terms, type Times } from './terms.ts'

/** A lock, and what is wanted of it; of a mutex all. */
export interface Part {
  readonly key: string
  readonly wants: Wants | undefined
}

export interface Choice extends Part {
  /** Other locks that have to be had with it; mostly none. */
  readonly besides: readonly Part[]
  readonly mode: Mode
  readonly try: boolean
  readonly options: LockOptions
  /** ms that it asks for. */
  readonly lease: number
  /** Abort after this many ms. */
  readonly abortAfter: number | undefined
  /** ms in the section. */
  readonly hold: number
  /** Ask by two calls of one owner at a time, without a limit to their patience: both are granted together. */
  readonly twice: boolean
  /** Enter the same lock once more inside; `read` and `write`: for that. */
  readonly reenter: 'same' | 'read' | 'write' | undefined
  /** Prolong it by hand inside. */
  readonly renew: boolean
  /** ms within which the call has to settle, if it is bound to. */
  readonly patience: number | undefined
  /** Pause before the next, ms. */
  readonly pause: number
}

/** ms in the section of a caller that loops. */
const LOOPED_HOLD = 25

/** Half of all calls go to a few keys, so that queues get long there. */
const HOT = 4

export function choose(random: Random, { keys, times }: Pick<Terms, 'keys' | 'times'>): Choice {
  const hot = () => keys[random.int(0, Math.min(HOT, keys.length) - 1)]!
  const key = random.chance(0.5) ? hot() : random.pick(keys)
  const wants = chooseWants(random, key)
  const mode: Mode = random.weighted({ fair: 48, unfair: 24, fairAfter: 16, once: 12 })
  const others = random.chance(0.08) ? [hot(), random.pick(keys)].filter(other => other !== key) : []
  const besides = [...new Set(others)].map(other => ({ key: other, wants: chooseOne(random, other) }))
  // Of a semaphore the two would wait for each other.
  const twice = mode !== 'once' && besides.length === 0 && kindOf(key) !== 'semaphore' && random.chance(0.04)
  const timeout =
    mode !== 'once' && !twice && random.chance(0.65) ? random.int(20, random.chance(0.5) ? 300 : 4_000) : undefined
  const { options: lease, length } = chooseLease(random, times)
  const options: LockOptions = { ...lease }
  if (mode === 'fair') options.fair = true
  if (mode === 'unfair') options.fairAfter = Number.POSITIVE_INFINITY
  if (mode === 'fairAfter') options.fairAfter = random.int(0, 500)
  if (mode === 'fair' && random.chance(0.1)) options.headStart = random.int(1, 1_000)
  if (timeout !== undefined) options.timeout = timeout
  if (mode === 'once' && random.chance(0.5)) options.timeout = 0
  return {
    key,
    // Several are taken with the same options, which do not say how many permits of each.
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
    // A call without a time-out waits as long as the lock is busy; a single attempt as long as the server may be away.
    patience: timeout ?? (mode === 'once' ? times.outageTimeout : undefined),
    pause: random.int(0, 120),
  }
}

/** Askers of a semaphore mostly agree how many permits it has. */
function chooseWants(random: Random, key: string): Wants | undefined {
  const one = chooseOne(random, key)
  if (typeof one !== 'object') return one
  const of = Math.max(1, sizeOf(key) + (random.chance(0.1) ? random.pick([-1, 1]) : 0))
  return [random.chance(0.6) ? 1 : random.int(1, of), of]
}

function chooseOne(random: Random, key: string): Wants | undefined {
  return kindOf(key) === 'readWrite' && random.chance(0.65) ? 'read' : usualWants(key)
}

/** What several may have at a time is held for longer, so that it is not free all the time. */
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

/** What a caller asks for that wants the same lock all the time, without a queue. */
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

/** What a process asks for next: all modes, leases, patiences and manners, mixed. */
import type { LockOptions } from '../../../src/index.ts'
import type { Random } from '../../kit/random.ts'
import type { Mode } from '../events.ts'
import { LONGEST_LEASE, OUTAGE_TIMEOUT } from './terms.ts'

export interface Choice {
  readonly key: string
  readonly mode: Mode
  readonly try: boolean
  readonly options: LockOptions
  /** Abort after this many ms. */
  readonly abortAfter: number | undefined
  /** ms in the section. */
  readonly hold: number
  /** Ask by two calls of one owner at a time, without a limit to their patience: both are granted together. */
  readonly twice: boolean
  /** Enter the same lock once more inside. */
  readonly reenter: boolean
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

export function choose(random: Random, keys: readonly string[]): Choice {
  const key = random.chance(0.5) ? keys[random.int(0, Math.min(HOT, keys.length) - 1)]! : random.pick(keys)
  const mode: Mode = random.weighted({ fair: 48, unfair: 24, fairAfter: 16, once: 12 })
  const twice = mode !== 'once' && random.chance(0.04)
  const timeout =
    mode !== 'once' && !twice && random.chance(0.65) ? random.int(20, random.chance(0.5) ? 300 : 4_000) : undefined
  const { options: lease, length } = chooseLease(random)
  const options: LockOptions = { ...lease }
  if (mode === 'fair') options.fair = true
  if (mode === 'unfair') options.fairAfter = Number.POSITIVE_INFINITY
  if (mode === 'fairAfter') options.fairAfter = random.int(0, 500)
  if (mode === 'fair' && random.chance(0.1)) options.headStart = random.int(1, 1_000)
  if (timeout !== undefined) options.timeout = timeout
  if (mode === 'once' && random.chance(0.5)) options.timeout = 0
  return {
    key,
    mode,
    try: mode === 'once' || (timeout !== undefined && random.chance(0.3)),
    options,
    abortAfter: !twice && random.chance(0.08) ? random.int(0, 400) : undefined,
    hold: random.chance(0.02)
      ? random.int(length, length + 400)
      : random.chance(0.6)
        ? random.int(0, 3)
        : random.int(3, 50),
    twice,
    reenter: random.chance(0.05),
    renew: random.chance(0.05),
    // A call without a time-out waits as long as the lock is busy; a single attempt as long as the server may be away.
    patience: timeout ?? (mode === 'once' ? OUTAGE_TIMEOUT : undefined),
    pause: random.int(0, 120),
  }
}

/** What a caller asks for that wants the same lock all the time, without a queue. */
export function chooseAgain(key: string): Choice {
  return {
    key,
    mode: 'unfair',
    try: false,
    options: {},
    abortAfter: undefined,
    hold: LOOPED_HOLD,
    reenter: false,
    renew: false,
    patience: undefined,
    pause: 0,
    twice: false,
  }
}

function chooseLease(random: Random): { options: LockOptions; length: number } {
  const length = random.int(300, LONGEST_LEASE)
  const kind = random.weighted({ fixed: 45, renewed: 35, default: 15, capped: 5 })
  if (kind === 'default') return { options: {}, length: 1_500 }
  if (kind === 'fixed') return { options: { lease: length }, length }
  if (kind === 'renewed') return { options: { lease: length, renew: true }, length }
  return { options: { lease: length, renew: true, maxHold: random.int(1, length) }, length }
}

/** Pictures for tests of what is made of them. */
import { type Picture, pictureOf, type SeenLock, seen } from '../../../cli/live/picture.ts'
import type { WaiterState } from '../../../src/index.ts'

/** The server's time of day in these pictures, in ms. */
const NOW = 1_000_000

interface Shown {
  readonly label?: string
  /** ms */
  readonly heldFor?: number
  readonly ttl?: number
  /** For how long each has waited, in ms, from the first in line. */
  readonly waits?: readonly number[]
}

/** A lock that is held, unless `ttl` is 0. */
export function lockSeen(
  key: string,
  { label = 'someone', heldFor = 1_000, ttl = 20_000, waits = [] }: Shown = {},
): SeenLock {
  const waiters = waits.map((waited, i): WaiterState => {
    const position = i + 1
    return {
      id: `id-${position}`,
      owner: `owner-${position}`,
      label: `waiter-${position}`,
      position,
      waited,
      expiresIn: 9_000,
    }
  })
  if (ttl === 0) return seen({ key, kind: 'mutex', locked: false, holds: 0, holders: [], waiters })
  const fencingToken = (NOW - heldFor) * 1_000
  const who = { owner: 'an owner', label, fencingToken, ttl }
  const holders = [{ id: 'an id', heldFor, ...who }]
  return seen({ key, kind: 'mutex', locked: true, ...who, holds: 1, holders, waiters })
}

export function picture(...locks: SeenLock[]): Picture {
  return pictureOf(locks)
}

/**
 * Describes all locks at one moment for `baton top` and `baton ui`: computes their figures, and sorts and filters the
 * locks.
 */
import type { LockState } from '../../src/index.ts'
import { byKey, fullestFirst, heldFor, timeLeft } from '../description.ts'

export interface SeenLock extends LockState {
  /** The ms since the first holder acquired the lock. Undefined if nobody holds the lock. */
  readonly heldFor: number | undefined
  /** The ms until the first of the lock's leases ends. Undefined if nobody holds the lock. */
  readonly timeLeft: number | undefined
  /** The longest wait in the queue so far, in ms; 0 if nobody waits. */
  readonly longestWait: number
}

export interface Picture {
  /** All locks, sorted by key. */
  readonly locks: readonly SeenLock[]
  /** Number of locks that are held, and number of locks with a queue. */
  readonly held: number
  readonly queued: number
  /** The number of waiters in all queues, and the longest wait so far, in ms. */
  readonly waiters: number
  readonly longestWait: number
}

export function seen(state: LockState): SeenLock {
  const longestWait = state.waiters.reduce((longest, { waited }) => Math.max(longest, waited), 0)
  const groups = state.groups && { groups: fullestFirst(state.groups) }
  return { ...state, ...groups, heldFor: heldFor(state), timeLeft: timeLeft(state), longestWait }
}

export function pictureOf(locks: readonly SeenLock[]): Picture {
  let [held, queued, waiters, longestWait] = [0, 0, 0, 0]
  for (const lock of locks) {
    if (lock.locked) held += 1
    if (lock.waiters.length > 0) queued += 1
    waiters += lock.waiters.length
    longestWait = Math.max(longestWait, lock.longestWait)
  }
  return { locks: sorted(locks, 'key'), held, queued, waiters, longestWait }
}

/**
 * Sort orders. Each order puts first what the user looks for: the longest time, the most waiters, or the next lease to
 * end.
 */
export const orders = {
  key: () => 0,
  heldFor: (a, b) => (b.heldFor ?? -1) - (a.heldFor ?? -1),
  // A lock that nobody holds sorts last. Infinity would not work: subtracted from itself it gives NaN.
  timeLeft: (a, b) => (a.timeLeft ?? Number.MAX_VALUE) - (b.timeLeft ?? Number.MAX_VALUE),
  waiters: (a, b) => b.waiters.length - a.waiters.length,
  longestWait: (a, b) => b.longestWait - a.longestWait,
} satisfies Record<string, (a: SeenLock, b: SeenLock) => number>

export type Order = keyof typeof orders

/**
 * Sorts the locks. Locks that are equal in this order are sorted by key, so that rows do not jump from one picture to
 * the next.
 */
export function sorted(locks: readonly SeenLock[], order: Order, reversed = false): SeenLock[] {
  const compare = orders[order]
  const inOrder = locks.toSorted((a, b) => compare(a, b) || byKey(a, b))
  return reversed ? inOrder.reverse() : inOrder
}

/** Returns the locks with this text in their key or in the label of a holder or waiter. Case is ignored. */
export function matching(locks: readonly SeenLock[], text: string): readonly SeenLock[] {
  if (text === '') return locks
  const wanted = text.toLowerCase()
  const has = (name: string) => name.toLowerCase().includes(wanted)
  const named = ({ label }: { readonly label: string }) => has(label)
  return locks.filter(({ key, holders, waiters }) => has(key) || holders.some(named) || waiters.some(named))
}

/** Keeps the groups with this text in their name, and the holders and waiters with it in their label or group. */
export function narrowed(lock: SeenLock, text: string): SeenLock {
  const wanted = text.toLowerCase()
  const has = (...names: readonly string[]) => names.some(name => name.toLowerCase().includes(wanted))
  const found = ({ label, group = '' }: { readonly label: string; readonly group?: string }) => has(label, group)
  return {
    ...lock,
    ...(lock.groups && { groups: lock.groups.filter(({ group }) => has(group)) }),
    holders: lock.holders.filter(found),
    waiters: lock.waiters.filter(found),
  }
}

/** Identifies one lock: a key may have one lock of each kind. */
export type LockName = Pick<LockState, 'key' | 'kind'>

/** Returns a text that identifies the lock. */
export function textOf({ key, kind }: LockName): string {
  return `${kind}/${key}`
}

export function isSame(a: LockName, b: LockName | undefined): boolean {
  return a.key === b?.key && a.kind === b.kind
}

/** Finds the lock with this name. Returns undefined if nobody holds the lock or waits for it. */
export function lockNamed(picture: Picture | undefined, name: LockName | undefined): SeenLock | undefined {
  return name && picture?.locks.find(lock => isSame(lock, name))
}

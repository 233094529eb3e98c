/** All locks at one moment, as `baton top` and `baton ui` draw them: the figures, their order, and what is left out of sight. */
import type { LockState } from '../../src/index.ts'
import { heldFor } from '../description.ts'

export interface SeenLock extends LockState {
  /** ms since the grant. Undefined: nobody holds it. */
  readonly heldFor: number | undefined
  /** ms for which the most patient of its queue has waited; 0: nobody waits. */
  readonly longestWait: number
}

export interface Picture {
  /** By key. */
  readonly locks: readonly SeenLock[]
  /** Locks that are held, and locks that have somebody in their queue. */
  readonly held: number
  readonly queued: number
  /** Waiters of all queues, and ms for which the most patient of them has waited. */
  readonly waiters: number
  readonly longestWait: number
}

export function seen(state: LockState): SeenLock {
  const longestWait = state.waiters.reduce((longest, { waited }) => Math.max(longest, waited), 0)
  return { ...state, heldFor: heldFor(state), longestWait }
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

/** What a picture can be ordered by. Each begins with what is looked for: the longest, the most, the next to end. */
export const orders = {
  key: () => 0,
  heldFor: (a, b) => (b.heldFor ?? -1) - (a.heldFor ?? -1),
  // What nobody holds never ends. An infinity less itself would be no number.
  timeLeft: (a, b) => (a.ttl ?? Number.MAX_VALUE) - (b.ttl ?? Number.MAX_VALUE),
  waiters: (a, b) => b.waiters.length - a.waiters.length,
  longestWait: (a, b) => b.longestWait - a.longestWait,
} satisfies Record<string, (a: SeenLock, b: SeenLock) => number>

export type Order = keyof typeof orders

/** Those that are equal stand by key, so that no row jumps from one picture to the next. */
export function sorted(locks: readonly SeenLock[], order: Order, reversed = false): SeenLock[] {
  const compare = orders[order]
  const inOrder = locks.toSorted((a, b) => compare(a, b) || (a.key < b.key ? -1 : 1))
  return reversed ? inOrder.reverse() : inOrder
}

/** Those that have the text in their key, or in the label of their holder or of a waiter, in capitals or not. */
export function matching(locks: readonly SeenLock[], text: string): readonly SeenLock[] {
  if (text === '') return locks
  const wanted = text.toLowerCase()
  const has = (name: string | undefined) => name?.toLowerCase().includes(wanted) ?? false
  return locks.filter(({ key, label, waiters }) => has(key) || has(label) || waiters.some(waiter => has(waiter.label)))
}

/** Undefined: nobody holds it or waits for it. */
export function lockNamed(picture: Picture | undefined, key: string | undefined): SeenLock | undefined {
  return key === undefined ? undefined : picture?.locks.find(lock => lock.key === key)
}

/** All locks at one moment, as `baton top` and `baton ui` draw them: the figures, their order, and what is left out of sight. */
import type { LockState } from '../../src/index.ts'
import { byKey, heldFor, timeLeft } from '../description.ts'

export interface SeenLock extends LockState {
  /** ms since the first of its holders was granted it. Undefined: nobody holds it. */
  readonly heldFor: number | undefined
  /** ms until the first of their leases ends. Undefined: nobody holds it. */
  readonly timeLeft: number | undefined
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
  return { ...state, heldFor: heldFor(state), timeLeft: timeLeft(state), longestWait }
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
  timeLeft: (a, b) => (a.timeLeft ?? Number.MAX_VALUE) - (b.timeLeft ?? Number.MAX_VALUE),
  waiters: (a, b) => b.waiters.length - a.waiters.length,
  longestWait: (a, b) => b.longestWait - a.longestWait,
} satisfies Record<string, (a: SeenLock, b: SeenLock) => number>

export type Order = keyof typeof orders

/** Those that are equal stand by key, so that no row jumps from one picture to the next. */
export function sorted(locks: readonly SeenLock[], order: Order, reversed = false): SeenLock[] {
  const compare = orders[order]
  const inOrder = locks.toSorted((a, b) => compare(a, b) || byKey(a, b))
  return reversed ? inOrder.reverse() : inOrder
}

/** Those that have the text in their key, or in the label of a holder or of a waiter, in capitals or not. */
export function matching(locks: readonly SeenLock[], text: string): readonly SeenLock[] {
  if (text === '') return locks
  const wanted = text.toLowerCase()
  const has = (name: string) => name.toLowerCase().includes(wanted)
  const named = ({ label }: { readonly label: string }) => has(label)
  return locks.filter(({ key, holders, waiters }) => has(key) || holders.some(named) || waiters.some(named))
}

/** Which lock it is: a key has one of each kind. */
export type LockName = Pick<LockState, 'key' | 'kind'>

/** It as a text, by which it can be found. */
export function textOf({ key, kind }: LockName): string {
  return `${kind}/${key}`
}

export function isSame(a: LockName, b: LockName | undefined): boolean {
  return a.key === b?.key && a.kind === b.kind
}

/** Undefined: nobody holds it or waits for it. */
export function lockNamed(picture: Picture | undefined, name: LockName | undefined): SeenLock | undefined {
  return name && picture?.locks.find(lock => isSame(lock, name))
}

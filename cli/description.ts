/** Describes locks for a person. */

import type { GroupState, HolderInfo, HolderState, LockState } from '../src/index.ts'
import { showTime } from './times.ts'

/** Sorts locks by key, so that no lock changes its place in a list. */
export function byKey(a: Pick<LockState, 'key' | 'kind'>, b: Pick<LockState, 'key' | 'kind'>): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1
  return a.kind < b.kind ? -1 : 1
}

/** Returns the ms since the first holder acquired the lock. Undefined if nobody holds the lock. */
export function heldFor({ holders }: LockState): number | undefined {
  return holders[0]?.heldFor
}

/** Returns the ms until the first of the lock's leases ends. Undefined if nobody holds the lock. */
export function timeLeft({ holders }: LockState): number | undefined {
  return holders.length === 0 ? undefined : holders.reduce((least, { ttl }) => Math.min(least, ttl), Infinity)
}

/**
 * Returns a lock as --json prints it: its state as the library returns it, with `heldFor` of the first holder added at
 * the top level.
 */
export function recordOf({ holders, waiters, ...state }: LockState): object {
  const [first] = holders
  return { ...state, ...(first && { heldFor: first.heldFor }), holders, waiters }
}

export const recordHelp = `
  { key, kind, locked, owner, label, holds, fencingToken, ttl, heldFor, permits, taken,
    groups: [{ group, taken, limit, weight, waiting }],
    holders: [{ id, owner, label, mode, permits, group, slots, fencingToken, heldFor, ttl }],
    waiters: [{ id, owner, label, mode, permits, group, why, position, waited, expiresIn, expected }] }
Times are in ms. kind is mutex, readWrite or semaphore. Only a semaphore has
permits and taken, and groups, group and why if calls gave a group; only a
read-write lock has mode, which is read or write. why is permits (too few are
free), group (the group is full) or turn (another waiter is before it). Outside
the arrays, owner, label, fencingToken, ttl and heldFor describe the first
holder, and are absent if nobody holds the lock. These names will not change.`

/** The kinds of locks, in words. */
export const kindNames: Readonly<Record<LockState['kind'], string>> = {
  mutex: 'mutex',
  readWrite: 'read-write lock',
  semaphore: 'semaphore',
}

/** Returns the label of a holder or waiter. If the label is empty, returns the owner. */
export function nameOf({ label, owner }: Pick<HolderState, 'label' | 'owner'>): string {
  return label || owner
}

/** Returns the holders as part of a sentence: "host:1", "host:1 and 2 others". */
export function namesOf({ holders }: LockState): string {
  const [first, ...others] = holders
  if (!first) return 'nobody'
  return nameOf(first) + (others.length > 0 ? ` and ${count(others.length)} ${plural(others.length, 'other')}` : '')
}

/**
 * A table cell that contains a name: the text before the name, the name, and the text after it. If space is short, the
 * name is cut.
 */
export type NamedCell = readonly [before: string, name: string, behind: string]

/**
 * Returns the holders as a table cell: "host:1" for a mutex, "4/5 host:1 +2" for a semaphore, "read host:1 +2" or
 * "write host:1" for a read-write lock. "+2" stands for two more holders.
 */
export function holderCell(state: LockState): NamedCell {
  const { kind, holders } = state
  const [first, ...others] = holders
  const name = first ? nameOf(first) : '–'
  const behind = others.length > 0 ? ` +${count(others.length)}` : ''
  if (kind === 'semaphore') return [`${permitsOf(state)} `, name, behind]
  if (kind === 'mutex' || !first) return ['', name, behind]
  const writer = writerOf(state)
  return writer ? ['write ', nameOf(writer), ''] : ['read ', name, behind]
}

/**
 * Describes a lock that may have several holders: "semaphore: 4 of 5 permits taken by 3 holders, 2 waiting",
 * "read-write lock: held by 3 readers".
 */
export function sharedBy(state: LockState): string {
  const { kind, holders, waiters } = state
  const many = (one: string) => `${count(holders.length)} ${plural(holders.length, one)}`
  const waiting = waiters.length > 0 ? `, ${count(waiters.length)} waiting` : ''
  if (kind === 'semaphore') {
    const by = holders.length > 0 ? ` by ${many('holder')}` : ''
    return `semaphore: ${permitsOf(state, ' of ')} permits taken${by}${waiting}`
  }
  const by = holders.length === 0 ? 'nobody holds it' : `held by ${writerOf(state) ? 'a writer' : many('reader')}`
  return `read-write lock: ${by}${waiting}`
}

/** Returns the writer that holds a read-write lock, if there is one. */
function writerOf({ holders }: LockState): HolderState | undefined {
  return holders.find(({ mode }) => mode === 'write')
}

/** Returns the permits taken and, if known, the total: "4/5". */
function permitsOf({ taken = 0, permits }: LockState, between = '/'): string {
  return permits === undefined ? count(taken) : `${count(taken)}${between}${count(permits)}`
}

/**
 * Returns the share of a lock that a holder has or a waiter wants: "2" (permits), "read" or "write"; with the numbers of
 * the permits, "2 #0,3". Empty for a mutex.
 */
export function shareOf({ mode, permits, slots }: Pick<HolderState, 'mode' | 'permits' | 'slots'>): string {
  const numbers = slots ? ` #${slots.join(',')}` : ''
  return mode ?? (permits === undefined ? '' : `${count(permits)}${numbers}`)
}

/** For each kind of lock, the title of the column that shows permits or modes (`shareOf`). */
export const shareTitles: Readonly<Record<LockState['kind'], string>> = {
  mutex: '',
  readWrite: 'mode',
  semaphore: 'permits',
}

/** Sums up the groups of a semaphore: "7 groups, 1 full". */
export function sumOf(groups: readonly GroupState[]): string {
  const full = groups.filter(({ taken, limit = Infinity }) => taken >= limit)
  return `${count(groups.length)} ${plural(groups.length, 'group')}, ${count(full.length)} full`
}

const byName = new Intl.Collator('en', { numeric: true })

/** Sorts groups: first those with most waiters, then those with most permits, then by name, "t2" before "t10". */
export function fullestFirst(groups: readonly GroupState[]): GroupState[] {
  return groups.toSorted((a, b) => b.waiting - a.waiting || b.taken - a.taken || byName.compare(a.group, b.group))
}

/** The titles of a table of the groups of a semaphore. */
export const groupTitles = ['group', 'taken', 'limit', 'weight', 'waiting'] as const

/** Returns the cells of a group, in the order of `groupTitles`. The calls without a group have the name "–". */
export function groupCells({ group, taken, limit, weight, waiting }: GroupState): string[] {
  return [group || '–', count(taken), limit === undefined ? '' : count(limit), String(weight), count(waiting)]
}

/** Describes the holders and how long the first has held the lock: "held by host:1, for 3s", or "held by nobody". */
export function heldBy(state: LockState): string {
  const held = heldFor(state)
  return held === undefined ? 'held by nobody' : `held by ${namesOf(state)}, for ${showTime(held)}`
}

/**
 * Appends to a sentence why a caller waits: ", held by host:1 for 3s, at position 2 of the queue". Parts that are
 * unknown are left out.
 */
export function withReason(sentence: string, { holder, position }: Reason): string {
  const who = holder ? `, held by ${holder.label} for ${showTime(holder.heldFor)}` : ''
  const place = position ? `, at position ${position} of the queue` : ''
  return `${sentence}${who}${place}`
}

interface Reason {
  readonly holder?: HolderInfo | undefined
  readonly position?: number | undefined
}

/** Formats a number with its digits in groups of three. */
export function count(number: number): string {
  return number.toLocaleString('en')
}

function plural(number: number, one: string): string {
  return number === 1 ? one : `${one}s`
}

/** A lock as a person reads it. */

import { messageOf } from '../local-redis/error-message.ts'
import type { HolderInfo, HolderState, LockState } from '../src/index.ts'
import { showTime } from './times.ts'

/** The order of locks in a list: that of their keys, so that none jumps about. */
export function byKey(a: Pick<LockState, 'key' | 'kind'>, b: Pick<LockState, 'key' | 'kind'>): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1
  return a.kind < b.kind ? -1 : 1
}

/** ms for which the first of its holders has had it. Undefined: nobody has. */
export function heldFor({ holders }: LockState): number | undefined {
  return holders[0]?.heldFor
}

/** ms until the lease ends that ends first. Undefined: nobody has one. */
export function timeLeft({ holders }: LockState): number | undefined {
  return holders.length === 0 ? undefined : holders.reduce((least, { ttl }) => Math.min(least, ttl), Infinity)
}

/** A lock as --json prints it: what the library says, with `heldFor` beside the other fields of the first holder. */
export function recordOf({ holders, waiters, ...state }: LockState): object {
  const [first] = holders
  return { ...state, ...(first && { heldFor: first.heldFor }), holders, waiters }
}

export const recordHelp = `
  { key, kind, locked, owner, label, holds, fencingToken, ttl, heldFor, permits, taken,
    holders: [{ id, owner, label, mode, permits, fencingToken, heldFor, ttl }],
    waiters: [{ id, owner, label, mode, permits, position, waited, expiresIn }] }
Times are in ms. kind is mutex, readWrite or semaphore. Only a semaphore has permits and taken; only a read-write lock has mode,
which is read or write. At the top, owner, label, fencingToken, ttl and heldFor are those of the first holder, and are absent if
nobody holds the lock. These names will not change.`

/** The kind in a text. */
export const kindNames: Readonly<Record<LockState['kind'], string>> = {
  mutex: 'mutex',
  readWrite: 'read-write lock',
  semaphore: 'semaphore',
}

/** A holder or a waiter by its label, or else by its owner. */
export function nameOf({ label, owner }: Pick<HolderState, 'label' | 'owner'>): string {
  return label || owner
}

/** "host:1", "host:1 and 2 others": who holds it, in a sentence. */
export function namesOf({ holders }: LockState): string {
  const [first, ...others] = holders
  if (!first) return 'nobody'
  return nameOf(first) + (others.length > 0 ? ` and ${count(others.length)} ${plural(others.length, 'other')}` : '')
}

/** What stands before a name, the name, and what stands behind it. Where there is little room, it is the name that is cut. */
export type NamedCell = readonly [before: string, name: string, behind: string]

/** Who holds it, in a cell of a table: "host:1"; of a semaphore "4/5 host:1 +2"; of a read-write lock "read host:1 +2", "write host:1". */
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
 * A lock that may have several holders, in a sentence: "semaphore: 4 of 5 permits taken by 3 holders, 2 waiting", "read-write
 * lock: held by 3 readers".
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

/** Who has a read-write lock to itself, though it may have read holds besides. */
function writerOf({ holders }: LockState): HolderState | undefined {
  return holders.find(({ mode }) => mode === 'write')
}

/** "4/5": how many permits are taken, of how many as far as that is known. */
function permitsOf({ taken = 0, permits }: LockState, between = '/'): string {
  return permits === undefined ? count(taken) : `${count(taken)}${between}${count(permits)}`
}

/** What a holder has, or a waiter wants, of a lock that is no mutex: "2" permits, "read". */
export function shareOf({ mode, permits }: Pick<HolderState, 'mode' | 'permits'>): string {
  return mode ?? (permits === undefined ? '' : count(permits))
}

/** The title of a column of these. */
export const shareTitles: Readonly<Record<LockState['kind'], string>> = {
  mutex: '',
  readWrite: 'mode',
  semaphore: 'permits',
}

/** "host:1, for 3s", as far as it is known. */
export function holderOf(state: LockState): string {
  const held = heldFor(state)
  return held === undefined ? 'nobody' : `${namesOf(state)}, for ${showTime(held)}`
}

/** ", held by host:1 for 3s, 2 in the queue": why somebody waits, as far as Redis has told. `cause`: why it has not. */
export function reasonOf({ holder, position, cause }: Reason): string {
  const who = holder ? `, held by ${holder.label} for ${showTime(holder.heldFor)}` : ''
  const place = position ? `, at position ${position} of the queue` : ''
  return who + place + (cause ? `; Redis is out of reach: ${messageOf(cause)}` : '')
}

interface Reason {
  readonly holder?: HolderInfo | undefined
  readonly position?: number | undefined
  readonly cause?: unknown
}

/** A number in groups of three digits. */
export function count(number: number): string {
  return number.toLocaleString('en')
}

function plural(number: number, one: string): string {
  return number === 1 ? one : `${one}s`
}

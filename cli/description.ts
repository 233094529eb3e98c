/** A lock as a person reads it. */

import { messageOf } from '../local-redis/error-message.ts'
import type { HolderInfo, LockState } from '../src/index.ts'
import { showTime } from './times.ts'

/** ms for which the holder has had it. Undefined: nobody has. */
export function heldFor({ holders }: LockState): number | undefined {
  return holders[0]?.heldFor
}

/** A lock as --json prints it: what the library says, with `heldFor` beside the other fields of the first holder. */
export function recordOf({ holders, waiters, ...state }: LockState): object {
  const [first] = holders
  return { ...state, ...(first && { heldFor: first.heldFor }), holders, waiters }
}

export const recordHelp = `
  { key, kind, locked, owner, label, holds, fencingToken, ttl, heldFor,
    holders: [{ id, owner, label, fencingToken, heldFor, ttl }],
    waiters: [{ id, owner, label, position, waited, expiresIn }] }
with times in ms, and without owner, label, fencingToken, ttl and heldFor where nobody holds it. These names stay as they are.`

/** "by host:1, for 3s", as far as it is known. */
export function holderOf(state: LockState): string {
  const held = heldFor(state)
  return held === undefined ? 'nobody' : `${state.label || state.owner}, for ${showTime(held)}`
}

/** ", held by host:1 for 3s, 2 in the queue": why somebody waits, as far as Redis has told. `cause`: why it has not. */
export function reasonOf({ holder, position, cause }: Reason): string {
  const who = holder ? `, held by ${holder.label} for ${showTime(holder.heldFor)}` : ''
  const place = position ? `, ${position} in the queue` : ''
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

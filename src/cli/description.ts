/** A lock as a person reads it. */
import type { LockState } from '../index.ts'
import { showTime } from './times.ts'

/** ms for which the holder has had it: tokens are the server's time of day, in µs, at the grant. Undefined: nobody has. */
export function heldFor({ locked, fencingToken }: LockState, serverTime: number): number | undefined {
  return locked && fencingToken !== undefined ? Math.max(0, serverTime - fencingToken / 1_000) : undefined
}

/** "by host:1, for 3s", as far as it is known. */
export function holderOf(state: LockState, serverTime: number): string {
  const held = heldFor(state, serverTime)
  return held === undefined ? 'nobody' : `${state.label || state.owner}, for ${showTime(held)}`
}

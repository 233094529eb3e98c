/** A lock and a waiter as cells of a table. `time`: how times are written there. */
import { count } from '../description.ts'
import type { SeenLock } from '../live/picture.ts'

type Time = (ms: number) => string

/** Name, holder, held for, left of the lease, length of the queue, longest wait. What is not is empty. */
export function lockCells(lock: SeenLock, time: Time): string[] {
  const { key, locked, label, owner = '', heldFor, ttl, waiters, longestWait } = lock
  return [
    key,
    locked ? label || owner : '–',
    heldFor === undefined ? '' : time(heldFor),
    ttl === undefined ? '' : time(ttl),
    waiters.length === 0 ? '' : count(waiters.length),
    waiters.length === 0 ? '' : time(longestWait),
  ]
}

/** Place, name, waited, expires in. */
export function waiterCells(waiter: SeenLock['waiters'][number], time: Time): [string, string, string, string] {
  const { position, label, owner, waited, expiresIn } = waiter
  return [count(position), label || owner, time(waited), time(expiresIn)]
}

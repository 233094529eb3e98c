/** Shows a lock, its holders and its waiters as table cells. The parameter `time` formats times. */
import { count, holderCell, type NamedCell, nameOf, shareOf } from '../description.ts'
import type { SeenLock } from '../live/picture.ts'

type Time = (ms: number) => string

/**
 * Returns the cells of a lock: name, holder, held for, time left of the lease, length of the queue, longest wait,
 * number of groups. If a value does not exist, its cell is empty.
 */
export function lockCells(lock: SeenLock, time: Time): [string, NamedCell, string, string, string, string, string] {
  const { key, heldFor, timeLeft, waiters, longestWait, groups } = lock
  return [
    key,
    holderCell(lock),
    heldFor === undefined ? '' : time(heldFor),
    timeLeft === undefined ? '' : time(timeLeft),
    waiters.length === 0 ? '' : count(waiters.length),
    waiters.length === 0 ? '' : time(longestWait),
    groups ? count(groups.length) : '',
  ]
}

/** Returns the cells of a holder: name, permits or mode, group, held for, time left of the lease. */
export function holderCells(holder: SeenLock['holders'][number], time: Time): [string, string, string, string, string] {
  return [nameOf(holder), shareOf(holder), holder.group ?? '', time(holder.heldFor), time(holder.ttl)]
}

/** Returns the cells of a waiter: position, name, permits or mode, group, waited, expires in, expected in, why it waits. */
export function waiterCells(waiter: SeenLock['waiters'][number], time: Time): string[] {
  const { position, group = '', waited, expiresIn, expected, why = '' } = waiter
  const estimate = expected === undefined ? '' : time(expected)
  return [count(position), nameOf(waiter), shareOf(waiter), group, time(waited), time(expiresIn), estimate, why]
}

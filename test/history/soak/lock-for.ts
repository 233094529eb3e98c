/**
 * Returns the lock for a key of a run, and the options of its calls. The key's name determines the kind of the lock.
 */
import type { Lock, LockClient, LockOptions } from '../../../src/index.ts'
import type { Wants } from '../wants.ts'
import { kindOf, sizeOf } from './terms.ts'

/** The mode or the permits that a call for this lock usually requests. */
export function usualWants(key: string): Wants | undefined {
  const kind = kindOf(key)
  if (kind === 'mutex') return undefined
  return kind === 'semaphore' ? [1, sizeOf(key)] : 'write'
}

export function lockFor(locks: LockClient, key: string, wants: Wants | undefined): Lock {
  if (wants === undefined) return locks.mutex(key)
  if (wants === 'read' || wants === 'write') return locks.readWrite(key)[wants]
  return locks.semaphore(key, wants[1])
}

/**
 * Adds the requested permits, and the group, to the options of a call for a semaphore. A call for one permit asks for
 * its number.
 */
export function optionsFor(options: LockOptions, wants: Wants | undefined): LockOptions {
  if (typeof wants !== 'object') return options
  const [permits, , group, groupLimit] = wants
  return { ...options, permits, group, groupLimit, slots: permits === 1 } as LockOptions
}

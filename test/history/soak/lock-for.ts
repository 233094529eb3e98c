/** The lock that a key of a run names, and options for its calls. */
import type { Lock, LockClient, LockOptions } from '../../../src/index.ts'
import type { Wants } from '../wants.ts'
import { kindOf, sizeOf } from './terms.ts'

/** What a caller usually asks of this lock. */
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

/** Returns the options of a call, with the permits that the call asks for. */
export function optionsFor(options: LockOptions, wants: Wants | undefined): LockOptions {
  return typeof wants === 'object' ? ({ ...options, permits: wants[0] } as LockOptions) : options
}

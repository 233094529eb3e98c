/** Names of locks, for the server and the page. */
import type { LockName } from './messages.ts'

/**
 * Returns the name of the lock under this key. If `kind` is neither 'readWrite' nor 'semaphore', the lock is the mutex.
 */
export function lockName(key: string, kind: unknown): LockName {
  return kind === 'readWrite' || kind === 'semaphore' ? { key, kind } : { key }
}

/** Returns a text that identifies the lock. */
export function textOf({ key, kind }: LockName): string {
  return `${kind ?? 'mutex'}/${key}`
}

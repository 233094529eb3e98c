/** Names of locks, for the server and the page. */
import type { LockName } from './messages.ts'

/** Returns the name of the key's lock of this kind; of its mutex if `kind` is neither of the other kinds. */
export function lockName(key: string, kind: unknown): LockName {
  return kind === 'readWrite' || kind === 'semaphore' ? { key, kind } : { key }
}

/** Returns a text that identifies the lock. */
export function textOf({ key, kind }: LockName): string {
  return `${kind ?? 'mutex'}/${key}`
}

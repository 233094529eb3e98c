/** Names of locks, for both sides. */
import type { LockName } from './messages.ts'

/** Names the key's mutex, unless another kind is given. */
export function lockName(key: string, kind: unknown): LockName {
  return kind === 'readWrite' || kind === 'semaphore' ? { key, kind } : { key }
}

/** A text that is unique to the lock. */
export function textOf({ key, kind }: LockName): string {
  return `${kind ?? 'mutex'}/${key}`
}

/** Which lock is meant, on both sides. */
import type { LockName } from './messages.ts'

/** Of the mutex of this key, unless another kind is named. */
export function lockName(key: string, kind: unknown): LockName {
  return kind === 'readWrite' || kind === 'semaphore' ? { key, kind } : { key }
}

/** One text for each lock. */
export function textOf({ key, kind }: LockName): string {
  return `${kind ?? 'mutex'}/${key}`
}

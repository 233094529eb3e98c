/** The names of the keys of a semaphore or a read-write lock; lua/README.md describes their content. */
import { type MutexNames, namesOf as namesOfMutex } from '../mutex/names.ts'

export interface PermitsNames extends MutexNames {
  /** A key that never exists; only a cluster needs its name (lua/README.md). */
  readonly none: string
}

export function namesOf(lock: string): PermitsNames {
  return { ...namesOfMutex(lock), none: `${lock}:n` }
}

export interface ReadWriteNames extends PermitsNames {
  /** The key of the readers' queue. The writers' queue is `queue`. */
  readonly readers: string
}

export function readWriteNamesOf(lock: string): ReadWriteNames {
  return { ...namesOf(lock), readers: `${lock}:r` }
}

export interface SemaphoreNames extends PermitsNames {
  /** The queue of the waiters with a group. The queue of the others is `queue`. */
  readonly waiting: string
  /** The groups whose turn may come. */
  readonly turns: string
  /** What each group has had. */
  readonly shares: string
}

export function semaphoreNamesOf(lock: string): SemaphoreNames {
  return { ...namesOf(lock), waiting: `${lock}:w`, turns: `${lock}:t`, shares: `${lock}:s` }
}

/** The keys of a semaphore and of a read-write lock; lua/README.md says what is in them. */
export interface PermitsNames {
  readonly lock: string
  readonly queue: string
  readonly expiry: string
  readonly deadlines: string
}

export function namesOf(lock: string): PermitsNames {
  return { lock, queue: `${lock}:queue`, expiry: `${lock}:expiry`, deadlines: `${lock}:deadlines` }
}

export interface ReadWriteNames extends PermitsNames {
  /** Those who wait to read; in `queue` stand those who wait to write. */
  readonly readers: string
}

export function readWriteNamesOf(lock: string): ReadWriteNames {
  return { ...namesOf(lock), readers: `${lock}:readers` }
}

/** The names of the keys of a semaphore or a read-write lock; lua/README.md describes their content. */
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
  /** The key of the readers' queue. The writers' queue is `queue`. */
  readonly readers: string
}

export function readWriteNamesOf(lock: string): ReadWriteNames {
  return { ...namesOf(lock), readers: `${lock}:readers` }
}

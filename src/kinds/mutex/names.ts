/** The names of a mutex's keys; lua/README.md describes their content. */
export interface MutexNames {
  readonly lock: string
  readonly queue: string
  readonly expiry: string
  readonly holds: string
}

export function namesOf(lock: string): MutexNames {
  return { lock, queue: `${lock}:queue`, expiry: `${lock}:expiry`, holds: `${lock}:holds` }
}

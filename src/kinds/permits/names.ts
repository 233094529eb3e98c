/** The keys of a semaphore; lua/README.md says what is in them. */
export interface PermitsNames {
  readonly lock: string
  readonly queue: string
  readonly expiry: string
  readonly deadlines: string
}

export function namesOf(lock: string): PermitsNames {
  return { lock, queue: `${lock}:queue`, expiry: `${lock}:expiry`, deadlines: `${lock}:deadlines` }
}

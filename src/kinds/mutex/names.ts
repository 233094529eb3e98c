/** The names of a mutex's keys; lua/README.md describes their content. The names are short because each call has them. */
export interface MutexNames {
  readonly lock: string
  readonly queue: string
  readonly deadlines: string
}

export function namesOf(lock: string): MutexNames {
  return { lock, queue: `${lock}:q`, deadlines: `${lock}:d` }
}

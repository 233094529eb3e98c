/** Waits until conditions become true. If the whole run fails first, the waits reject with the run's error. */
export interface Conditions {
  /** Resolves once `isTrue` returns true; rejects if the run fails. */
  until(isTrue: () => boolean): Promise<void>
  /** Checks all conditions. Call this whenever a condition may have become true. */
  check(): void
  /** Makes all waits reject. Only the first failure is reported. */
  fail(error: unknown): void
}

export function openConditions(): Conditions {
  const awaited = new Set<{ isTrue: () => boolean; resolve: () => void; reject: (error: unknown) => void }>()
  let failure: { error: unknown } | undefined

  return {
    until(isTrue) {
      return new Promise((resolve, reject) => {
        if (failure) reject(failure.error)
        else if (isTrue()) resolve()
        else awaited.add({ isTrue, resolve, reject })
      })
    },
    check() {
      for (const wait of awaited) {
        if (!wait.isTrue()) continue
        awaited.delete(wait)
        wait.resolve()
      }
    },
    fail(error) {
      failure ??= { error }
      for (const wait of awaited) wait.reject(failure.error)
      awaited.clear()
    },
  }
}

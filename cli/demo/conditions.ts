/** Waiting for something to become true, unless the whole undertaking fails first. */
export interface Conditions {
  /** Resolves once `isTrue` is; rejects if the undertaking fails. */
  until(isTrue: () => boolean): Promise<void>
  /** To be called whenever something may have become true. */
  check(): void
  /** The first failure is the one that counts. */
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

export function messageOf(error: unknown): string {
  // A host with several addresses fails with one error per address, and no message of its own.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ')
  return error instanceof Error ? error.message : String(error)
}

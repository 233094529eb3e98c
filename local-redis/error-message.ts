export function messageOf(error: unknown): string {
  // A connection to a host with several addresses fails with one error per address. Such an AggregateError has no
  // message of its own.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ')
  return error instanceof Error ? error.message : String(error)
}

/** Counts of a quorum client since it was opened. */
export interface Tally {
  /** How often the client asked all servers for a lock. */
  readonly attempts: number
  /** How many grants needed another round trip after a majority had agreed. */
  readonly secondRounds: number
}

/** Returns the sum over several clients; undefined if none of them reports these counts. */
export function tallyOf(tallies: readonly (Tally | undefined)[]): Tally | undefined {
  const told = tallies.filter(tally => tally !== undefined)
  if (told.length === 0) return undefined
  return {
    attempts: told.reduce((sum, { attempts }) => sum + attempts, 0),
    secondRounds: told.reduce((sum, { secondRounds }) => sum + secondRounds, 0),
  }
}

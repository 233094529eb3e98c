/** What a client of a quorum has counted since it was opened. */
export interface Tally {
  /** How many times the client asked all servers for a lock. */
  readonly attempts: number
  /**
   * How many grants took a second round trip. In these grants, a majority had voted for the caller, but its servers had
   * not yet agreed on a token.
   */
  readonly secondRounds: number
}

/** Adds up the counts of several clients. Returns undefined if no client has any. */
export function tallyOf(tallies: readonly (Tally | undefined)[]): Tally | undefined {
  const told = tallies.filter(tally => tally !== undefined)
  if (told.length === 0) return undefined
  return {
    attempts: told.reduce((sum, { attempts }) => sum + attempts, 0),
    secondRounds: told.reduce((sum, { secondRounds }) => sum + secondRounds, 0),
  }
}

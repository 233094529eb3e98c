/** How a command ends that cannot do what it was asked to: one line on stderr, and an exit code as other programs have it. */

export const exitCodes = {
  /** Unusable arguments (sysexits: EX_USAGE). */
  usage: 64,
  /** Redis cannot be reached, or refuses (EX_UNAVAILABLE). */
  unavailable: 69,
  /** The lock was lost while the command ran (EX_TEMPFAIL). */
  lost: 75,
  /** The wait was too long, as with timeout(1). */
  timeout: 124,
  /** The command is there, but cannot be started, as with shells. */
  notStarted: 126,
  notFound: 127,
  /** Ended by a signal: this and its number. */
  signal: 128,
} as const

export class Failure extends Error {
  constructor(
    message: string,
    readonly exitCode: number,
  ) {
    super(message)
  }
}

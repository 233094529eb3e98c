/** How a command ends that cannot do what it was asked to: one line on stderr, and an exit code as other programs have it. */
import { printable } from './printable.ts'

export const exitCodes = {
  /** The answer is no: nothing was released, the sale of the demo went wrong. */
  no: 1,
  /** Unusable arguments (sysexits: EX_USAGE). */
  usage: 64,
  /** Redis cannot be reached, or refuses (EX_UNAVAILABLE). */
  unavailable: 69,
  /** A fault of this program (EX_SOFTWARE). */
  fault: 70,
  /** A file cannot be written (EX_CANTCREAT). */
  notWritten: 73,
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

/** One line on stderr, of which this program's user should know. Messages quote keys and labels, which are somebody else's text. */
export function warn(message: string): void {
  console.error(`baton: ${printable(message)}`)
}

/** How a failing command ends: with one line on stderr, and with an exit code that means the same in other programs. */
import type { LockError } from '../src/index.ts'
import { printable } from './printable.ts'

export const exitCodes = {
  /**
   * The command ran without an error, but did not achieve its purpose: nothing was released, or the sale of the demo
   * went wrong.
   */
  no: 1,
  /** The arguments are unusable (sysexits: EX_USAGE). */
  usage: 64,
  /** Redis, or something else that the command needs, is not available (EX_UNAVAILABLE). */
  unavailable: 69,
  /** This program has a bug (EX_SOFTWARE). */
  fault: 70,
  /** A file cannot be written (EX_CANTCREAT). */
  notWritten: 73,
  /** The lock was lost while the command ran (EX_TEMPFAIL). */
  lost: 75,
  /** The lock was not acquired within the time limit. timeout(1) uses the same code. */
  timeout: 124,
  /** The command exists but cannot be started. Shells use the same code. */
  notStarted: 126,
  notFound: 127,
  /** The command was ended by a signal. The exit code is this number plus the signal's number. */
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

/**
 * Returns whether this is an error of the library with this code. The error's class is not needed for that, so a command
 * that takes no lock need not load the library.
 */
export function hasCode<E extends LockError>(error: unknown, code: string): error is E {
  return error instanceof Error && 'code' in error && error.code === code
}

/** Warns the user with one line on stderr. Messages quote keys and labels, which are untrusted text. */
export function warn(message: string): void {
  console.error(`baton: ${printable(message)}`)
}

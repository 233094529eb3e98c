/**
 * The command that runs under the lock, and with it all that it starts.
 *
 * Where stdin is no terminal, it is the leader of a process group of its own, and signals go to the whole group: a script
 * that is ended alone would leave the program that it is waiting for at work. (Node can make a group only together with a
 * session, so such a command has no controlling terminal.) Where stdin is a terminal, the command has to
 * stay in the group of this program, or it could not read what is typed: there only the command itself is sent signals.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { exitCodes, Failure, warn } from '../failure.ts'
import { printable } from '../printable.ts'
import { onlyDead } from './process-table.ts'

/**
 * Whether it has a process group of its own, which does not hear the keys of a terminal. (To ask `process.stdin` would
 * make its pipe non-blocking, which is the command's pipe, too.)
 */
export const grouped = !isatty(0)

export class Command {
  /** The exit code of the command, as a shell would tell it. Rejects with Failure when it cannot be started. */
  readonly ended: Promise<number>
  readonly #child: ChildProcess

  constructor([file, ...args]: readonly [string, ...string[]], env: NodeJS.ProcessEnv) {
    try {
      this.#child = spawn(file, args, { stdio: 'inherit', detached: grouped, env: { ...process.env, ...env } })
    } catch (error) {
      // Most reasons come as an event; a few, such as arguments that are too long, at once.
      throw notStarted(file, error as NodeJS.ErrnoException)
    }
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', (error: NodeJS.ErrnoException) => reject(notStarted(file, error)))
      this.#child.once('exit', (code, signal) =>
        resolve(code ?? exitCodes.signal + constants.signals[signal as NodeJS.Signals]),
      )
    })
  }

  /** Sends it to the group, or to the command alone. */
  kill(signal: NodeJS.Signals): void {
    try {
      this.#send(signal)
    } catch (error) {
      // For instance EPERM: it runs as somebody else, by sudo.
      warn(`${signal} could not be sent to the command: ${(error as Error).message}`)
    }
  }

  /** Whether anything of it still runs: also when the command itself has ended, if it has a group. */
  get runs(): boolean {
    try {
      return this.#send(0) && !(grouped && onlyDead(this.#child.pid!))
    } catch {
      return true
    }
  }

  /** Whether there is anything left to send it to. Throws where that may not be done. */
  #send(signal: NodeJS.Signals | 0): boolean {
    const { pid, exitCode, signalCode } = this.#child
    // The number of a process that has ended may be that of another one now; that of a group is kept while it has members.
    const over = !grouped && (exitCode !== null || signalCode !== null)
    if (pid === undefined || over) return false
    try {
      return process.kill(grouped ? -pid : pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
      throw error
    }
  }
}

function notStarted(file: string, { code, message }: NodeJS.ErrnoException): Failure {
  const missing = code === 'ENOENT'
  const why =
    missing && file.includes('/') && existsSync(file)
      ? 'the interpreter named in its first line (#!) does not exist'
      : ''
  const what = why || (missing ? 'command not found' : message)
  return new Failure(`${printable(file)}: ${what}`, missing ? exitCodes.notFound : exitCodes.notStarted)
}

/**
 * The command that runs under the lock, with all the processes that it starts.
 *
 * If stdin is not a terminal, the command leads a process group of its own, and signals go to the whole group. If the
 * command is a script, a signal to the command alone might end only the script, and the program that the script waits
 * for would keep running. Node can create a group only together with a session, so a command with a group of its own
 * has no controlling terminal.
 *
 * If stdin is a terminal, the command has to stay in this program's group, so that it can read what is typed. Then this
 * program sends signals only to the command itself.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'
import { exitCodes, Failure, warn } from '../failure.ts'
import { printable } from '../printable.ts'
import { exitCodeOf, ignored } from '../signals.ts'
import { stdioOfCommand } from './descriptors.ts'
import { onlyDead } from './process-table.ts'

/**
 * Whether the command has a process group of its own. If it has, keys such as Ctrl-C do not send it a signal. (`isatty`
 * is used because `process.stdin` would make the pipe of stdin non-blocking, and the command shares that pipe.)
 */
export const grouped = !isatty(0)

export class Command {
  /** The command's exit code, as a shell would report it. Rejects with Failure if the command cannot be started. */
  readonly ended: Promise<number>
  readonly #child: ChildProcess

  constructor(words: readonly [string, ...string[]], env: NodeJS.ProcessEnv) {
    const [file, ...args] = ignored.length === 0 ? words : ignoring(words)
    try {
      const stdio = stdioOfCommand()
      this.#child = spawn(file, args, { stdio, detached: grouped, env: { ...process.env, ...env } })
    } catch (error) {
      // `spawn` reports most errors by an event. It throws a few at once, for instance if the arguments are too long.
      throw notStarted(file, error as NodeJS.ErrnoException)
    }
    process.once('exit', leaveTerminal)
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', (error: NodeJS.ErrnoException) => reject(notStarted(file, error)))
      this.#child.once('exit', (code, signal) => resolve(code ?? exitCodeOf(signal as NodeJS.Signals)))
    })
  }

  /** Sends the signal to the command's process group, or to the command alone if it has no group of its own. */
  kill(signal: NodeJS.Signals): void {
    try {
      this.#send(signal)
    } catch (error) {
      // The error is EPERM, for instance, if the command runs as another user through sudo.
      warn(`${signal} could not be sent to the command: ${(error as Error).message}`)
    }
  }

  /**
   * Whether any process of the command still runs. If the command has a group, this includes processes that outlive the
   * command itself.
   */
  get runs(): boolean {
    try {
      return this.#send(0) && !(grouped && onlyDead(this.#child.pid!))
    } catch {
      return true
    }
  }

  /** Sends the signal. Returns false if no process is left to receive it. Throws if the signal is not permitted. */
  #send(signal: NodeJS.Signals | 0): boolean {
    const { pid, exitCode, signalCode } = this.#child
    // If the command has ended, its pid may now belong to another process, which must not be signalled. The number of a
    // group is not reused while the group has members.
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

/**
 * Returns a command line that runs the command with the signals ignored that the caller has ignored. Node itself starts
 * every program with none ignored.
 */
function ignoring(words: readonly string[]): [string, ...string[]] {
  const names = ignored.map(name => name.slice('SIG'.length)).join(' ')
  return ['/bin/sh', '-c', `trap '' ${names}; exec "$@"`, 'sh', ...words]
}

/**
 * When this program ends, Node gives each terminal among its descriptors the settings that the terminal had at the start.
 * That would undo what the command has changed. Node leaves out descriptors that are closed.
 */
function leaveTerminal(): void {
  const terminals = [0, 1, 2].filter(isatty)
  if (terminals.length === 0) return
  try {
    // If nothing had the terminal open any more, it would hang up, and SIGHUP would end this program before its time.
    openSync('/dev/tty', 'r')
    for (const fd of terminals) closeSync(fd)
  } catch {
    // The terminal is not that of this session. Node resets it.
  }
}

function notStarted(file: string, { code, message }: NodeJS.ErrnoException): Failure {
  const missing = code === 'ENOENT'
  const why =
    missing && file.includes('/') && existsSync(file)
      ? 'the interpreter that the first line of this file names (#!) does not exist'
      : ''
  const what = why || (missing ? 'command not found' : message)
  return new Failure(`${printable(file)}: ${what}`, missing ? exitCodes.notFound : exitCodes.notStarted)
}

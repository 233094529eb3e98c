/**
 * Handles signals for `baton run`. While it connects, a signal ends this program. While it waits, a signal ends the wait.
 * Once the command runs, signals are forwarded to it.
 */
import { isatty } from 'node:tty'
import { exitCodeOf, onEnding } from '../signals.ts'
import { type Command, grouped } from './command.ts'
import { processOf } from './process-table.ts'

/** The terminal sends these signals to every process in the foreground, for Ctrl-C and Ctrl-\. */
const fromTerminal: readonly string[] = ['SIGINT', 'SIGQUIT']

export class Signals {
  #hear: (exitCode: number) => void
  #command: Command | undefined
  readonly #undo: (() => void)[] = []

  /** `hear` is called with the exit code for the signal, for each signal that arrives before the wait begins. */
  constructor(hear: (exitCode: number) => void) {
    this.#hear = hear
    const heard = (name: NodeJS.Signals) => {
      if (!this.#command) return this.#hear(exitCodeOf(name))
      // If the terminal has sent the signal, and the command is in this program's process group, the command has
      // received the signal already, so it is not forwarded.
      if (grouped || !fromTerminal.includes(name) || !inForeground()) this.#command.kill(name)
    }
    this.#undo.push(onEnding(heard))
    for (const name of ['SIGUSR1', 'SIGUSR2'] as const) this.#on(name, heard)
    if (!grouped) return
    // The command has a process group of its own, so Ctrl-Z stops only this program, and then nothing renews the lock.
    // So this listener stops the command, too. It sends SIGSTOP and not SIGTSTP: the system ignores SIGTSTP for a
    // process group that no shell controls, such as the command's group. (The listener is set from the start, because
    // Ctrl-Z may come while the command is being started.)
    this.#on('SIGTSTP', () => {
      this.#command?.kill('SIGSTOP')
      process.kill(process.pid, 'SIGSTOP')
    })
    // If the lease ended while this program was stopped, the lease's timer fires as soon as the program continues, and
    // the command receives SIGTERM. SIGCONT must come after SIGTERM: otherwise the command would work on without the
    // lock. So another timer delays SIGCONT.
    this.#on('SIGCONT', () => void setTimeout(() => this.#command?.kill('SIGCONT')))
  }

  /** From now on, `hear` is called for signals. */
  wait(hear: (exitCode: number) => void): void {
    this.#hear = hear
  }

  /** From now on, signals go to the command. */
  goTo(command: Command): void {
    this.#command = command
  }

  close(): void {
    for (const undo of this.#undo.splice(0)) undo()
  }

  #on(name: NodeJS.Signals, listener: NodeJS.SignalsListener): void {
    process.on(name, listener)
    this.#undo.push(() => process.off(name, listener))
  }
}

/**
 * Returns whether this program is in the foreground of a terminal, and so receives the signals of Ctrl-C and similar
 * keys.
 */
function inForeground(): boolean {
  const own = processOf('self')
  // Without /proc, a program whose input or error output is a terminal is assumed to be in the foreground.
  return own ? own.group === own.foreground : isatty(0) || isatty(2)
}

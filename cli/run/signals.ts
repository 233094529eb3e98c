/**
 * Handles signals that would end this program. Before the command runs, a signal ends the wait. Once the command runs,
 * signals are forwarded to it.
 */
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { type Command, grouped } from './command.ts'
import { processOf } from './process-table.ts'

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
/** The terminal sends these signals to every process in the foreground, for Ctrl-C and Ctrl-\. */
const fromTerminal: readonly string[] = ['SIGINT', 'SIGQUIT']

export class Signals {
  /** The number of the first signal received; 0 if there was none. */
  number = 0
  #command: Command | undefined
  readonly #listeners: { readonly name: NodeJS.Signals; readonly listener: () => void }[] = []

  /** `hear` is called for each signal that arrives before the command starts. */
  constructor(hear: () => void) {
    for (const name of forwarded) {
      this.#on(name, () => {
        this.number ||= constants.signals[name]
        if (!this.#command) return hear()
        // If the terminal has sent the signal, and the command is in this program's process group, the command has
        // received the signal already, so it is not forwarded.
        if (grouped || !fromTerminal.includes(name) || !inForeground()) this.#command.kill(name)
      })
    }
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

  /** From now on, signals go to the command. */
  goTo(command: Command): void {
    this.#command = command
  }

  close(): void {
    for (const { name, listener } of this.#listeners.splice(0)) process.off(name, listener)
  }

  #on(name: NodeJS.Signals, listener: () => void): void {
    process.on(name, listener)
    this.#listeners.push({ name, listener })
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

/**
 * Handles signals that would end this program. Before the command runs, a signal ends the wait. Once the command runs,
 * signals are forwarded to it.
 */
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { type Command, grouped } from './command.ts'
import { processOf } from './process-table.ts'

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
/** Keys of the terminal send these signals to every process in the foreground. */
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
        // A command in the same group receives the terminal's signals directly.
        if (grouped || !fromTerminal.includes(name) || !inForeground()) this.#command.kill(name)
      })
    }
    if (!grouped) return
    // Ctrl-Z stops only this program, and then nothing renews the lock. So the command is stopped, too. SIGTSTP has no
    // effect on a group that no shell controls, so SIGSTOP is used. (The listener is set from the start, because Ctrl-Z
    // may come while the command is being started.)
    this.#on('SIGTSTP', () => {
      this.#command?.kill('SIGSTOP')
      process.kill(process.pid, 'SIGSTOP')
    })
    // The timer delays SIGCONT. If the lease ended during the stop, the lease's timer fires first, so that SIGTERM
    // arrives before SIGCONT.
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
 * Returns whether this program is in the terminal's foreground, where keys send signals. A program in the background,
 * or without a terminal, is not in the foreground.
 */
function inForeground(): boolean {
  const own = processOf('self')
  // Without /proc, assume that a program that reads from or writes to a terminal is in its foreground.
  return own ? own.group === own.foreground : isatty(0) || isatty(2)
}

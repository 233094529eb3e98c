/** Forwards the signals that would end this program: first they end the wait, later they go to the command. */
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { type Command, grouped } from './command.ts'
import { processOf } from './process-table.ts'

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
/** Terminal keys send these signals to every process in the foreground. */
const fromTerminal: readonly string[] = ['SIGINT', 'SIGQUIT']

export class Signals {
  /** The number of the first signal received, or 0. */
  number = 0
  #command: Command | undefined
  readonly #listeners: { readonly name: NodeJS.Signals; readonly listener: () => void }[] = []

  /** `hear` is called for each signal until there is a command. */
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
    // Ctrl-Z would stop only this program, and nothing would renew the lock, so the command is stopped with it. SIGTSTP
    // would not do: it has no effect on a group that no shell controls. (The listener is set from the start: Ctrl-Z may
    // come while the command is being started.)
    this.#on('SIGTSTP', () => {
      this.#command?.kill('SIGSTOP')
      process.kill(process.pid, 'SIGSTOP')
    })
    // Delayed by a timer. If the lease ended in the meantime, its own timer fires first, and SIGTERM arrives before
    // SIGCONT.
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
 * Whether this program receives the terminal's keys: it does not if it runs in the background, or without a terminal.
 */
function inForeground(): boolean {
  const own = processOf('self')
  // Without /proc, assume that a program that reads from or writes to a terminal is in its foreground.
  return own ? own.group === own.foreground : isatty(0) || isatty(2)
}

/** Signals that would end this program go to whoever hears them now: first to the wait, then to the command. */
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { type Command, grouped } from './command.ts'
import { processOf } from './process-table.ts'

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
/** Keys of a terminal send these to all that run in its foreground. */
const fromTerminal: readonly string[] = ['SIGINT', 'SIGQUIT']

export class Signals {
  /** Of the first one. */
  number = 0
  #command: Command | undefined
  readonly #listeners: { readonly name: NodeJS.Signals; readonly listener: () => void }[] = []

  /** `hear`: what they do until there is a command. */
  constructor(hear: () => void) {
    for (const name of forwarded) {
      this.#on(name, () => {
        this.number ||= constants.signals[name]
        if (!this.#command) return hear()
        // In one group with this program, it hears the keys by itself.
        if (grouped || !fromTerminal.includes(name) || !inForeground()) this.#command.kill(name)
      })
    }
    if (!grouped) return
    // Ctrl-Z stops only this program, and nobody would renew the lock. So the command is stopped with it. It cannot be by
    // SIGTSTP, which does nothing to a group that no shell watches over. (Heard from the start: it may come while the
    // command is being started.)
    this.#on('SIGTSTP', () => {
      this.#command?.kill('SIGSTOP')
      process.kill(process.pid, 'SIGSTOP')
    })
    // By a timer: that of a lease which has ended in the meantime goes off before, and then SIGTERM is there first.
    this.#on('SIGCONT', () => void setTimeout(() => this.#command?.kill('SIGCONT')))
  }

  /** From now on they are the command's. */
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

/** Whether keys of the terminal reach this program: not if it runs in the background, or without any terminal. */
function inForeground(): boolean {
  const own = processOf('self')
  // Not every system tells. Who reads from a terminal, or writes to it, is mostly in its foreground.
  return own ? own.group === own.foreground : isatty(0) || isatty(2)
}

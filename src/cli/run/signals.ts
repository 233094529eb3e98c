/** Signals that would end this program go to whoever hears them now: first to the wait, then to the command. */
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
/** Keys of a terminal send these to all that run in its foreground. */
const fromTerminal: readonly string[] = ['SIGINT', 'SIGQUIT']

export class Signals {
  hear: (name: NodeJS.Signals) => void = () => {}
  /** Whether those who hear are in the foreground together with this program, and so hear the keys of a terminal themselves. */
  shared = false
  /** Of the first one. */
  number = 0
  readonly #listeners = forwarded.map(name => {
    const listener = () => {
      this.number ||= constants.signals[name]
      if (!(this.shared && fromTerminal.includes(name) && inForeground())) this.hear(name)
    }
    process.on(name, listener)
    return { name, listener }
  })

  close(): void {
    for (const { name, listener } of this.#listeners) process.off(name, listener)
  }
}

/** Whether keys of the terminal reach this program: not if it runs in the background, or without any terminal. */
function inForeground(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    // Behind the name, which may have blanks and brackets in it: state, parent, group, session, terminal, its foreground group.
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return group === foreground
  } catch {
    // Not every system has it. Who reads from a terminal, or writes to it, is mostly in its foreground.
    return process.stdin.isTTY || process.stderr.isTTY
  }
}

/** The command: started, told of signals, and ended with all that it has started when its lock is lost. */
import { setTimeout as sleep } from 'node:timers/promises'
import { exitCodes, warn } from '../failure.ts'
import type { Hold } from './asked.ts'
import { Command } from './command.ts'
import type { Signals } from './signals.ts'

/** Between two looks whether something is left of a command that is being ended, in ms. */
const LOOK = 50
/** For how long something may be left after SIGKILL, in ms: the kernel takes a moment. */
const LEFT = 1_000

/**
 * Resolves to the exit code of the command, or 75 when it had to be ended because the lock was lost. `grace`: ms from SIGTERM
 * to SIGKILL then. Rejects with Failure when it cannot be started.
 */
export async function supervise(
  words: readonly [string, ...string[]],
  { signal, environment }: Hold,
  grace: number,
  signals: Signals,
): Promise<number> {
  const command = new Command(words, environment)
  signals.goTo(command)
  let lastLook = Number.POSITIVE_INFINITY
  let last: NodeJS.Timeout | undefined
  const lost = () => {
    warn(`${signal.reason.message}; ending the command`)
    command.kill('SIGTERM')
    last = setTimeout(() => {
      command.kill('SIGKILL')
      lastLook = performance.now() + LEFT
    }, grace)
  }
  signal.addEventListener('abort', lost, { once: true })
  try {
    const code = await command.ended
    if (!signal.aborted) return code
    // No event tells of the end of what the command has started.
    while (command.runs && performance.now() < lastLook) await sleep(LOOK)
    return exitCodes.lost
  } finally {
    signal.removeEventListener('abort', lost)
    clearTimeout(last)
  }
}

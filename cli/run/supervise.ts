/** Starts the command, forwards signals to it, and ends it with all its processes if the lock is lost. */
import { setTimeout as sleep } from 'node:timers/promises'
import { exitCodes, warn } from '../failure.ts'
import type { Hold } from './asked.ts'
import { Command } from './command.ts'
import type { Signals } from './signals.ts'

/** How often to check for remaining processes of a command that is being ended, in ms. */
const LOOK = 50
/** How long processes may remain after SIGKILL, in ms. The kernel needs a moment to end them. */
const LEFT = 1_000

/**
 * Resolves to the command's exit code, or to 75 if the command was ended because the lock was lost. If the lock is
 * lost, the command receives SIGTERM, and `grace` ms later SIGKILL. Rejects with Failure if the command cannot be
 * started.
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
    warn(`${signal.reason.message.replace(': maxHold', ': --max-hold')}; baton ends the command`)
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
    // No event reports the end of the processes that the command has started, so this loop checks for them.
    while (command.runs && performance.now() < lastLook) await sleep(LOOK)
    return exitCodes.lost
  } finally {
    signal.removeEventListener('abort', lost)
    clearTimeout(last)
  }
}

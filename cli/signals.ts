/** The signals that end this program. */
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { basename } from 'node:path'
import { exitCodes } from './failure.ts'

const all = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
export type Ending = (typeof all)[number]

/** The signals that the caller has ignored, so that they must end neither this program nor what it starts. */
export const ignored = ignoredByCaller()
/** How many listeners `onEnding` has. */
let hearing = 0

/**
 * The first process of a container receives only the signals for which it listens. So as such a process, `baton`
 * listens from the start.
 */
export function hearFromStart(): void {
  for (const name of ignored) process.on(name, () => {})
  if (process.pid !== 1) return
  for (const name of all) process.on(name, () => hearing === 0 && process.exit(exitCodeOf(name)))
}

/** Calls `hear` for each signal that would end this program, until the returned function is called. */
export function onEnding(hear: (name: Ending) => void): () => void {
  const names = all.filter(name => !ignored.includes(name))
  for (const name of names) process.on(name, hear)
  hearing += 1
  return () => {
    for (const name of names) process.off(name, hear)
    hearing -= 1
  }
}

export function exitCodeOf(name: NodeJS.Signals): number {
  return exitCodes.signal + constants.signals[name]
}

/**
 * A program inherits from its caller which signals are ignored. But Node undoes that before it runs any code, so only
 * two traces are left. Shells note in `$_` what they have started: nohup, or `baton` itself. And the caller, usually a
 * script, ignores the signal itself. But some callers do so only for themselves:
 *
 *  - A shell with job control, which ignores SIGTSTP, too.
 *  - A program that waits for system(3): it ignores SIGINT and SIGQUIT, and does not listen for SIGCHLD as a shell does.
 *  - Bash, with SIGQUIT.
 */
function ignoredByCaller(): readonly Ending[] {
  const [ignores, hears] = ['SigIgn', 'SigCgt'].map(set => signalsIn(set)) as [Has, Has]
  const waits = ignores('SIGINT') && ignores('SIGQUIT') && !hears('SIGCHLD')
  const inherited = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).filter(
    name => ignores(name) && !ignores('SIGTSTP') && !(waits && name === 'SIGINT'),
  )
  const nohup = basename(process.env['_'] ?? '') === 'nohup'
  return nohup && !inherited.includes('SIGHUP') ? [...inherited, 'SIGHUP'] : inherited
}

type Has = (name: NodeJS.Signals) => boolean

/** Returns which signals are in a set of the caller's. Without /proc, none are. */
function signalsIn(set: string): Has {
  try {
    const status = readFileSync(`/proc/${process.ppid}/status`, 'utf8')
    const [, mask] = new RegExp(`^${set}:\\t(\\w+)$`, 'm').exec(status)!
    return name => ((BigInt(`0x${mask}`) >> BigInt(constants.signals[name] - 1)) & 1n) === 1n
  } catch {
    return () => false
  }
}

/** The command: started, told of signals, and ended when its lock is lost. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import type { Lease } from '../../index.ts'
import { exitCodes, Failure, warn } from '../failure.ts'
import { printable } from '../printable.ts'
import type { Signals } from './signals.ts'

/**
 * Resolves to the exit code of the command, or 75 when it had to be ended because the lock was lost. `grace`: ms from SIGTERM
 * to SIGKILL then. Rejects with Failure when it cannot be started.
 */
export async function supervise(
  command: readonly string[],
  lease: Lease,
  grace: number,
  signals: Signals,
): Promise<number> {
  const [file, ...args] = command as [string, ...string[]]
  const child = start(file, args, { BATON_KEY: lease.key, BATON_FENCING_TOKEN: String(lease.fencingToken) })
  signals.hear = name => child.kill(name)
  signals.shared = true
  let last: NodeJS.Timeout | undefined
  const lost = () => {
    warn(`${lease.signal.reason.message}; ending the command`)
    child.kill('SIGTERM')
    last = setTimeout(() => child.kill('SIGKILL'), grace)
  }
  lease.signal.addEventListener('abort', lost, { once: true })
  try {
    const code = await ended(child, file)
    return lease.signal.aborted ? exitCodes.lost : code
  } finally {
    lease.signal.removeEventListener('abort', lost)
    clearTimeout(last)
  }
}

function start(file: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  try {
    return spawn(file, args, { stdio: 'inherit', env: { ...process.env, ...env } })
  } catch (error) {
    // Most reasons come as an event; a few, such as arguments that are too long, at once.
    throw notStarted(file, error as NodeJS.ErrnoException)
  }
}

function ended(child: ChildProcess, file: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => reject(notStarted(file, error)))
    child.once('exit', (code, signal) =>
      resolve(code ?? exitCodes.signal + constants.signals[signal as NodeJS.Signals]),
    )
  })
}

function notStarted(file: string, { code, message }: NodeJS.ErrnoException): Failure {
  const missing = code === 'ENOENT'
  const why =
    missing && file.includes('/') && existsSync(file) ? 'the program that its first line names is not there' : ''
  const what = why || (missing ? 'there is no such command' : message)
  return new Failure(`${printable(file)}: ${what}`, missing ? exitCodes.notFound : exitCodes.notStarted)
}

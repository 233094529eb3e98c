/**
 * `baton run`: a command under a lock.
 *
 *      wait ──granted──▶ command ──ends──▶ release ──▶ its exit code
 *       │ 124 too long      │ 75 the lock is lost: SIGTERM, then SIGKILL, and only then the end
 *       │ 128+n a signal    │ signals go on to the command
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Command } from 'commander'
import { type Lease, LockTimeoutError } from '../index.ts'
import { type Connected, type ConnectionOptions, connected, withConnection } from './connection.ts'
import { exitCodes, Failure } from './failure.ts'
import { printable } from './table.ts'
import { parseTime, showTime } from './times.ts'
import { showWaiting } from './waiting.ts'

interface RunOptions extends ConnectionOptions {
  readonly fair?: boolean
  readonly timeout?: number
  readonly lease?: number
  readonly label?: string
  readonly grace: number
}

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
/** Keys of a terminal send these to all that run in its foreground: the command has them already. */
const fromTerminal: readonly string[] = ['SIGINT', 'SIGQUIT']

export function addRun(program: Command): void {
  withConnection(program.command('run'))
    .description('runs a command while holding a lock')
    .usage('[options] <key> -- <command> [args...]')
    .argument('<key>', 'name of the lock')
    .argument('<command...>', 'what to run; behind --, so that its options are its own')
    .option('--fair', 'stand in the queue: first come, first served')
    .option('--timeout <time>', 'how long to wait for the lock (default: as long as it takes)', parseTime)
    .option('--lease <time>', 'how long others wait if this program dies (default: 30s)', parseTime)
    .option('--label <text>', 'what others see of who holds or waits (default: host:pid)')
    .option('--grace <time>', 'from SIGTERM to SIGKILL, if the lock is lost', parseTime, parseTime('10s'))
    .addHelpText(
      'after',
      `
Examples:
  baton run nightly-report -- ./report.sh
  baton run deploy --fair --timeout 5m -- make deploy
  baton run import --timeout 0s -- ./import || echo "somebody else is at it"
  baton run ledger -- sh -c 'psql -v token=$BATON_FENCING_TOKEN -f post.sql'

The command has BATON_KEY and BATON_FENCING_TOKEN in its environment. Exit codes: the command's own; 128+n if signal n ended
it; 75 the lock was lost; 124 it was not granted in time; 126, 127 the command cannot be started; 64 unusable arguments; 69 Redis
cannot be reached.`,
    )
    .action(async (key: string, command: string[], options: RunOptions) => {
      process.exitCode = await connected(options, options.label, at => run(at, key, command, options))
    })
}

async function run(at: Connected, key: string, command: readonly string[], options: RunOptions): Promise<number> {
  const signals = new Signals()
  try {
    const lease = await take(at, key, options, signals)
    if (!lease) return exitCodes.signal + signals.number
    try {
      return await supervise(command, lease, options.grace, signals)
    } finally {
      await lease.release().catch(error => console.error(`baton: ${error.message}; the lock ends with its lease`))
    }
  } finally {
    signals.close()
  }
}

/** Undefined: a signal came first. */
async function take(at: Connected, key: string, options: RunOptions, signals: Signals): Promise<Lease | undefined> {
  const { fair = false, timeout, lease } = options
  const gaveUp = new AbortController()
  signals.hear = () => gaveUp.abort()
  const display = showWaiting(at, key)
  try {
    return await at.locks.lock(key, { fair, timeout, lease, renew: true, signal: gaveUp.signal })
  } catch (error) {
    if (gaveUp.signal.aborted) return undefined
    if (error instanceof LockTimeoutError) throw new Failure(tooLong(error), exitCodes.timeout)
    throw error
  } finally {
    display.end()
  }
}

function tooLong({ key, waited, holder, position }: LockTimeoutError): string {
  const who = holder ? `, held by ${holder.label} for ${showTime(holder.heldFor)}` : ''
  const place = position ? `, ${position} in the queue` : ''
  return printable(`${key} was not granted within ${showTime(waited)}${who}${place}`)
}

/** Resolves to the exit code of the command, or 75 when it had to be ended because the lock was lost. */
async function supervise(command: readonly string[], lease: Lease, grace: number, signals: Signals): Promise<number> {
  const [file, ...args] = command as [string, ...string[]]
  const env = { ...process.env, BATON_KEY: lease.key, BATON_FENCING_TOKEN: String(lease.fencingToken) }
  const child = spawn(file, args, { stdio: 'inherit', env })
  signals.hear = name => child.kill(name)
  signals.shared = true
  let last: NodeJS.Timeout | undefined
  const lost = () => {
    console.error(`baton: ${lease.signal.reason.message}; ending the command`)
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

function ended(child: ChildProcess, file: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      const missing = error.code === 'ENOENT'
      const why = missing ? 'there is no such command' : error.message
      reject(new Failure(`${printable(file)}: ${why}`, missing ? exitCodes.notFound : exitCodes.notStarted))
    })
    child.once('exit', (code, signal) =>
      resolve(code ?? exitCodes.signal + constants.signals[signal as NodeJS.Signals]),
    )
  })
}

/** Signals that would end this program go to whoever hears them now. */
class Signals {
  hear: (name: NodeJS.Signals) => void = () => {}
  number = 0
  readonly #listeners = forwarded.map(name => {
    const listener = () => {
      this.number ||= constants.signals[name]
      this.#pass(name)
    }
    process.on(name, listener)
    return { name, listener }
  })
  /** While a command runs in the foreground of a terminal. */
  shared = false

  #pass(name: NodeJS.Signals): void {
    if (!(this.shared && process.stdin.isTTY && fromTerminal.includes(name))) this.hear(name)
  }

  close(): void {
    for (const { name, listener } of this.#listeners) process.off(name, listener)
  }
}

/**
 * `baton run`: runs a command under a lock.
 *
 *      connect ──▶ wait ──granted──▶ command ──ends──▶ release ──▶ exit code of the command
 *       │           │                   │ a signal arrives: it is forwarded to the command
 *       │           │                   │ the lock is lost: the command gets SIGTERM, later SIGKILL, and ends ──▶ exit code 75
 *       │           │ the wait takes too long ──▶ exit code 124
 *       │ signal n arrives ──▶ exit code 128+n
 */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { messageOf } from '../local-redis/error-message.ts'
import type { LockQueueFullError, LockTimeoutError } from '../src/index.ts'
import { defaults } from '../src/settings.ts'
import { checkEnvironment } from './bytes.ts'
import { type Connected, type ConnectionOptions, connected, withConnection } from './connection.ts'
import { withReason } from './description.ts'
import { exitCodes, Failure, hasCode, warn } from './failure.ts'
import { parseCount } from './parse-count.ts'
import { type Asked, type AskedLock, askedLock, checkAsked, type Hold, withAsked } from './run/asked.ts'
import { missingDashes } from './run/dashes.ts'
import { RunMetrics } from './run/metrics.ts'
import { Signals } from './run/signals.ts'
import { supervise } from './run/supervise.ts'
import { parseTime, showTime } from './times.ts'
import { reportOutages, showWaiting } from './waiting.ts'

/** How long to wait for the release after the command has ended, in ms. */
const LAST_WORD = 1_000

interface RunOptions extends ConnectionOptions, Asked {
  readonly fair?: boolean
  readonly fairAfter?: number
  readonly timeout?: number
  readonly lease?: number
  readonly maxHold?: number
  readonly minHold?: number
  readonly maxWaiters?: number
  readonly busyOk?: boolean
  readonly label?: string
  readonly grace: number
  readonly verbose?: boolean
  readonly metrics?: string
}

const fair = new Option('--fair', 'wait in the fair queue from the start: first come, first served')
const maxWaiters = new Option(
  '--max-waiters <n>',
  'give up if that many callers wait already; 0 means never wait',
).argParser(parseLimit)
const grace = new Option('--grace <time>', 'if the lock is lost, time that the command has between SIGTERM and SIGKILL')
  .argParser(parseTime)
  .default(parseTime('10s'), '10s')

export function addRun(program: Command): void {
  withAsked(withConnection(program.command('run')))
    .description('runs a command while holding a lock')
    .usage('[options] <key> -- <command> [args...]')
    .argument('<key>', 'name of the lock')
    .argument(
      '<command...>',
      'the command to run; it goes after --, so that its options are not read as options of baton',
    )
    .addOption(fair.conflicts('fairAfter'))
    .option(
      '--fair-after <time>',
      `join the fair queue after waiting this long, such as 500ms or 5s (default: ${showTime(defaults.fairAfter)})`,
      parseTime,
    )
    .option('--timeout <time>', 'longest wait for the lock, such as 30s or 5m (default: no limit)', parseTime)
    .option(
      '--lease <time>',
      `how long the lock stays taken if baton dies (default: ${showTime(defaults.lease)})`,
      parseTime,
    )
    .option(
      '--max-hold <time>',
      'longest time to hold the lock, such as 1h; then baton ends the command (default: no limit)',
      parseTime,
    )
    .option(
      '--min-hold <time>',
      'how long the lock stays taken at least, such as 60s, even if the command ends earlier',
      parseTime,
    )
    .addOption(maxWaiters.conflicts('fairAfter'))
    .option('--busy-ok', 'if another caller has the lock, end at once with exit code 0, and print nothing')
    .option('--label <text>', 'name by which others see this holder or waiter (default: host:pid)')
    .addOption(grace)
    .option(
      '--verbose',
      'log to stderr who holds the lock, how long the wait was, and outages of Redis, even if stderr is not a terminal',
    )
    .option(
      '--metrics <file>',
      "file to write the wait, the duration and the exit code to, for node_exporter's textfile collector; its name has to end with .prom",
      promFile,
    )
    .addHelpText(
      'after',
      `
Examples:
  baton run nightly-report -- ./report.sh
  baton run deploy --fair --timeout 5m -- make deploy
  baton run sync --fair-after 10s --max-hold 1h -- ./sync.sh
  baton run import --timeout 0s -- ./import || echo "another process holds it"
  baton run api-quota --permits 5 -- ./import.sh      # a semaphore: at most five at a time
  baton run prices --write -- ./import.sh             # a read-write lock; readers use --read
  baton run warehouse --and till -- ./book.sh         # takes both locks, or none
  baton run backup --url redis://a --url redis://b --url redis://c -- ./backup.sh    # a quorum: one server may be down
  baton run ledger -- sh -c 'exec psql -v token=$BATON_FENCING_TOKEN -f post.sql'
  baton run gpu --permits 4 --slots -- sh -c 'CUDA_VISIBLE_DEVICES=$BATON_SLOT exec ./train'    # one GPU each
  * * * * *  baton run tick --busy-ok --min-hold 50s -- ./tick.sh    # once a minute, on however many machines
  0 3 * * *  baton run backup --label "$(hostname) cron" --timeout 1h --verbose -- ./backup.sh >>backup.log 2>&1

The environment of the command has BATON_KEY, BATON_FENCING_TOKEN and
BATON_FENCING_TOKENS. With --and, the first two are those of the first key;
BATON_FENCING_TOKENS always has the tokens of all keys, as JSON. With --slots,
BATON_SLOT has the numbers. While baton waits on a terminal, one line shows who
holds the lock.

Exit codes: that of the command; 128+n if signal n ended it; 75 if the lock was
lost, so that the command was ended; 124 if the lock was not granted in time, or
--max-waiters callers wait (0 with --busy-ok); 126 or 127 if the command could
not be started; 64 for unusable arguments; 69 if Redis cannot be used, or was
unreachable for ${showTime(defaults.outageTimeout)} while baton waited.

Signals are forwarded to the command and its child processes. If the lock is
lost, they get SIGTERM, and SIGKILL after --grace. If stdin is a terminal, only
the command gets signals, and has to end its child processes itself (a shell
with nothing left to do becomes its last command by exec). When the command
ends, baton releases the lock and ends, even if child processes still run.
SIGKILL cannot be forwarded: if baton gets it, the command keeps running without
the lock.`,
    )
    .action(async (key: string, command: [string, ...string[]], options: RunOptions, self: Command) => {
      const signals = new Signals(exitCode => {
        metrics.ended(exitCode)
        process.exit(exitCode)
      })
      checkCommand(command, self)
      checkEnvironment()
      checkAsked(options, options.url)
      checkWait(options)
      const metrics = new RunMetrics(options.metrics, key, options.busyOk)
      let code: number = exitCodes.fault
      try {
        code = await connected(options, { label: options.label, lease: options.lease }, at =>
          run(at, key, command, options, metrics, signals),
        )
      } catch (error) {
        if (error instanceof Failure) code = error.exitCode
        else if (hasCode(error, 'ERR_LOCK_ARGUMENT')) code = exitCodes.usage
        throw error
      } finally {
        metrics.ended(code)
      }
      process.exitCode = code
    })
}

function parseLimit(text: string): number {
  return text === '0' ? 0 : parseCount(text)
}

/** Refuses options about the wait of a caller that does not wait. They would have no effect. */
function checkWait({ busyOk, timeout, fairAfter, maxWaiters }: RunOptions): void {
  if (timeout ?? !busyOk) return
  const name = fairAfter !== undefined ? '--fair-after' : maxWaiters ? '--max-waiters' : undefined
  if (name === undefined) return
  const why = timeout === 0 ? '--timeout 0' : '--busy-ok'
  throw new Failure(`${name} has no effect with ${why}, because baton does not wait`, exitCodes.usage)
}

/** The collector ignores files of other names. */
function promFile(file: string): string {
  if (!file.endsWith('.prom')) throw new InvalidArgumentError('The name has to end with .prom.')
  return file
}

/**
 * Refuses a command that does not come after `--`. Commander would accept it, and would take options of the command for
 * options of `run`.
 */
function checkCommand(command: readonly string[], run: Command): void {
  const words = process.argv.slice(2)
  const dashes = words.indexOf('--')
  if (dashes === -1 || words.length - dashes - 1 !== command.length) {
    const missing = missingDashes(words, run)
    throw new Failure(missing ?? 'the key is missing; usage: baton run <key> -- <command> [args...]', exitCodes.usage)
  }
  if (command[0] === '')
    throw new Failure('the command after -- is empty; usage: baton run <key> -- <command> [args...]', exitCodes.usage)
}

async function run(
  at: Connected,
  key: string,
  command: readonly [string, ...string[]],
  options: RunOptions,
  metrics: RunMetrics,
  signals: Signals,
): Promise<number> {
  const gaveUp = new AbortController()
  signals.wait(exitCode => gaveUp.abort(exitCode))
  if (options.verbose) reportOutages(at)
  try {
    const hold = await take(at, askedLock(at.locks, key, options), options, gaveUp.signal)
    if (hold === 'busy') return 0
    if (!hold) return gaveUp.signal.reason
    try {
      // A signal may have arrived together with the grant.
      if (gaveUp.signal.aborted) return gaveUp.signal.reason
      metrics.granted()
      return await supervise(command, hold, options.grace, signals)
    } finally {
      await release(hold)
    }
  } finally {
    signals.close()
  }
}

/** Takes the lock. Returns undefined if a signal came first, and 'busy' if another caller has it and that is fine. */
async function take(
  at: Connected,
  lock: AskedLock,
  options: RunOptions,
  signal: AbortSignal,
): Promise<Hold | 'busy' | undefined> {
  const { fair = false, fairAfter, lease, maxHold, minHold, maxWaiters, busyOk = false, verbose = false } = options
  const timeout = options.timeout ?? (busyOk ? 0 : undefined)
  const waiting = showWaiting(at, lock.inspect, verbose)
  try {
    return await lock.take({ fair, fairAfter, timeout, lease, maxHold, minHold, maxWaiters, renew: true, signal })
  } catch (error) {
    if (signal.aborted) return undefined
    const full = hasCode<LockQueueFullError>(error, 'ERR_LOCK_QUEUE_FULL')
    if (full && !busyOk) throw new Failure(`${error.message}; the command was not run`, exitCodes.timeout)
    if (full) return 'busy'
    if (hasCode<LockTimeoutError>(error, 'ERR_LOCK_TIMEOUT')) {
      if (busyOk && !error.cause) return 'busy'
      // Redis was out of reach, so nobody knows whether another caller has the lock.
      if (busyOk) throw new Failure(`${error.message}; the command was not run`, exitCodes.unavailable)
      const { permits, read, write } = options
      // The message of a mutex's error says no more than this sentence, unless Redis was out of reach.
      const plain = permits === undefined && !read && !write && !error.cause
      const why = plain
        ? withReason(`${error.key} was not granted within ${showTime(error.waited)}`, error)
        : error.message
      throw new Failure(`${why}; the command was not run`, exitCodes.timeout)
    }
    throw error
  } finally {
    waiting.end()
  }
}

/** Releases the lock. Does not wait long, in case Redis went away while the command ran. */
async function release(hold: Hold): Promise<void> {
  const { default: within } = await import('p-timeout')
  const message = `Redis did not confirm the release within ${showTime(LAST_WORD)}`
  try {
    await within(hold.release(), { milliseconds: LAST_WORD, message })
  } catch (error) {
    warn(`${messageOf(error)}; the lock becomes free when its lease ends`)
  }
}

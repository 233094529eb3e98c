/**
 * `baton run`: runs a command under a lock.
 *
 *      wait ──granted──▶ command ──ends──▶ release ──▶ its exit code
 *       │ 124 too long      │ 75 the lock is lost: SIGTERM, then SIGKILL, and only then the end
 *       │ 128+n a signal    │ signals go on to the command
 */
import { type Command, Option } from 'commander'
import { messageOf } from '../local-redis/error-message.ts'
import { LockTimeoutError } from '../src/errors.ts'
import { type Connected, type ConnectionOptions, connected, withConnection } from './connection.ts'
import { reasonOf } from './description.ts'
import { exitCodes, Failure, warn } from './failure.ts'
import { type Asked, type AskedLock, askedLock, checkAsked, type Hold, withAsked } from './run/asked.ts'
import { missingDashes } from './run/dashes.ts'
import { Signals } from './run/signals.ts'
import { supervise } from './run/supervise.ts'
import { parseTime, showTime } from './times.ts'
import { showWaiting } from './waiting.ts'

/** How long the release may take after the command has ended, in ms. */
const LAST_WORD = 1_000

interface RunOptions extends ConnectionOptions, Asked {
  readonly fair?: boolean
  readonly fairAfter?: number
  readonly timeout?: number
  readonly lease?: number
  readonly maxHold?: number
  readonly label?: string
  readonly grace: number
  readonly verbose?: boolean
}

const grace = new Option('--grace <time>', 'from SIGTERM to SIGKILL, if the lock is lost')
  .argParser(parseTime)
  .default(parseTime('10s'), '10s')

export function addRun(program: Command): void {
  withAsked(withConnection(program.command('run')))
    .description('runs a command while holding a lock')
    .usage('[options] <key> -- <command> [args...]')
    .argument('<key>', 'name of the lock')
    .argument('<command...>', 'what to run; behind --, so that its options are its own')
    .option('--fair', 'stand in the queue: first come, first served')
    .option('--fair-after <time>', 'stand in the queue after so long', parseTime)
    .option('--timeout <time>', 'how long to wait for the lock (default: as long as it takes)', parseTime)
    .option('--lease <time>', 'how long others wait if this program dies (default: 30s)', parseTime)
    .option('--max-hold <time>', 'how long the lock is held at most; then it is lost', parseTime)
    .option('--label <text>', 'what others see of who holds or waits (default: host:pid)')
    .addOption(grace)
    .option('--verbose', 'say on stderr for whom it waits, and for how long it has, where that is no terminal, too')
    .addHelpText(
      'after',
      `
Examples:
  baton run nightly-report -- ./report.sh
  baton run deploy --fair --timeout 5m -- make deploy
  baton run sync --fair-after 10s --max-hold 1h -- ./sync.sh
  baton run import --timeout 0s -- ./import || echo "somebody else is at it"
  baton run api-quota --permits 5 -- ./import.sh      # a semaphore: five of these at a time
  baton run prices --write -- ./import.sh             # a read-write lock, whose readers say --read
  baton run warehouse --and till -- ./book.sh         # both or none
  baton run backup --url redis://a --url redis://b --url redis://c -- ./backup.sh    # a quorum: one of them may be away
  baton run ledger -- sh -c 'exec psql -v token=$BATON_FENCING_TOKEN -f post.sql'
  0 3 * * *  baton run backup --label "$(hostname) cron" --timeout 1h --verbose -- ./backup.sh >>backup.log 2>&1

The command has BATON_KEY and BATON_FENCING_TOKEN in its environment, with --and those of the first key, and BATON_FENCING_TOKENS, the
tokens of all its keys as JSON. On a terminal, one line shows who holds the lock while it is waited for.
Exit codes: the command's own; 128+n if signal n ended it; 75 the lock was lost, and the command was ended for it; 124 it was not
granted in time; 126, 127 the command cannot be started; 64 unusable arguments; 69 Redis cannot be used, or has been away for 15 s
while it waits.
A signal goes on to the command and to what it has started; so does the SIGTERM of a lost lock, and after --grace the SIGKILL. With a
terminal as stdin they go to the command only, and what it has started it has to end itself (a shell that has nothing else to
do hands over by exec). baton ends, and the lock is free, when the command itself ends, whatever it leaves running. SIGKILL
cannot go on: it leaves the command running without the lock.`,
    )
    .action(async (key: string, command: [string, ...string[]], options: RunOptions, self: Command) => {
      checkCommand(command, self)
      checkAsked(options, options.url)
      process.exitCode = await connected(options, { label: options.label }, at => run(at, key, command, options))
    })
}

/**
 * Commander does not distinguish words before `--` from those after it. A word before it that looked like an option
 * would be taken for one, so a command before `--` is refused.
 */
function checkCommand(command: readonly string[], run: Command): void {
  const words = process.argv.slice(2)
  const dashes = words.indexOf('--')
  if (dashes === -1 || words.length - dashes - 1 !== command.length) {
    const missing = missingDashes(words, run)
    throw new Failure(missing ?? 'there is no key; it is: baton run <key> -- <command> [args...]', exitCodes.usage)
  }
  if (command[0] === '') throw new Failure('the command behind -- is empty', exitCodes.usage)
}

async function run(
  at: Connected,
  key: string,
  command: readonly [string, ...string[]],
  options: RunOptions,
): Promise<number> {
  const gaveUp = new AbortController()
  const signals = new Signals(() => gaveUp.abort())
  try {
    const hold = await take(at, askedLock(at.locks, key, options), options, gaveUp.signal)
    if (!hold) return exitCodes.signal + signals.number
    try {
      return await supervise(command, hold, options.grace, signals)
    } finally {
      await release(hold)
    }
  } finally {
    signals.close()
  }
}

/** Returns undefined if a signal came first. */
async function take(
  at: Connected,
  lock: AskedLock,
  options: RunOptions,
  signal: AbortSignal,
): Promise<Hold | undefined> {
  const { fair = false, fairAfter, timeout, lease, maxHold, verbose = false } = options
  const waiting = showWaiting(at, lock.inspect, verbose)
  try {
    return await lock.take({ fair, fairAfter, timeout, lease, maxHold, renew: true, signal })
  } catch (error) {
    if (signal.aborted) return undefined
    if (error instanceof LockTimeoutError) {
      const why = `${error.key} was not granted within ${showTime(error.waited)}${reasonOf(error)}`
      throw new Failure(why, exitCodes.timeout)
    }
    throw error
  } finally {
    waiting.end()
  }
}

/** The caller of this program should not have to wait for a Redis that went away in the meantime. */
async function release(hold: Hold): Promise<void> {
  const { default: within } = await import('p-timeout')
  const message = `Redis has not heard of the release within ${showTime(LAST_WORD)}`
  try {
    await within(hold.release(), { milliseconds: LAST_WORD, message })
  } catch (error) {
    warn(`${messageOf(error)}; the lock ends with its lease`)
  }
}

/** `baton top`: all locks, their holders and their queues, live in the terminal, or as one snapshot. */
import { isatty } from 'node:tty'
import { type Command, Option } from 'commander'
import { type Connected, type ConnectionOptions, connected, oneLook, withConnection } from './connection.ts'
import { recordHelp } from './description.ts'
import { exitCodes, Failure } from './failure.ts'
import type { Order } from './live/picture.ts'
import { parseInterval } from './times.ts'

interface TopOptions extends ConnectionOptions {
  readonly interval: number
  readonly sort: keyof typeof orders
  readonly once?: boolean
  readonly json?: boolean
}

/** The sort orders, by the titles of the columns. */
const orders = { lock: 'key', held: 'heldFor', left: 'timeLeft', queue: 'waiters', longest: 'longestWait' } as const

export function addTop(program: Command): void {
  withConnection(program.command('top'))
    .description('shows all locks, their holders and their queues, live')
    .argument(
      '[pattern]',
      'only keys that match this glob pattern, which may contain *, ? and [abc]; \\ escapes them',
      '*',
    )
    .addOption(
      new Option('--interval <time>', 'time between two readings of Redis, such as 500ms or 5s')
        .argParser(parseInterval)
        .default(1_000, '1s')
        .conflicts('once'),
    )
    .addOption(
      new Option('--sort <column>', 'column to sort by at first').choices(Object.keys(orders)).default('queue'),
    )
    .option('--once', 'print one snapshot as plain text')
    .addOption(new Option('--json', 'print one snapshot as JSON, for scripts').implies({ once: true }))
    .addHelpText(
      'after',
      `
Examples:
  baton top
  baton top 'order:*' --interval 5s
  baton top --once --sort longest | head
  baton top --json | jq '.waiters'

Keys: arrows move, enter opens a lock with its queue, / filters, s sorts, space
pauses, ? shows all keys, q quits. If a reading is slow, because there are many
keys or Redis is busy, top then pauses for four times as long as the reading
took. The list shows how many groups a semaphore has, if the screen is wide
enough. An opened lock shows each group, and why each waiter waits.

--json prints { held, queued, waiters, longestWait, locks }. Each of the locks
has longestWait, timeLeft (until its first lease ends) and the
following:${recordHelp}`,
    )
    .action(async (pattern: string, options: TopOptions) => {
      process.exitCode = await connected(options, options.once ? oneLook : {}, at => top(at, pattern, options))
    })
}

async function top(at: Connected, pattern: string, options: TopOptions): Promise<number> {
  const { interval, sort, once, json } = options
  const order: Order = orders[sort]
  if (once) {
    const { snapshot } = await import('./top/snapshot.ts')
    console.log(await snapshot(at, pattern, order, json))
    return 0
  }
  if (!isatty(0) || !isatty(1) || process.env['TERM'] === 'dumb') {
    throw new Failure('top needs a terminal; give --once to print one snapshot without a terminal', exitCodes.usage)
  }
  const { showLive } = await import('./top/session.ts')
  const signal = await showLive(at, { pattern, interval, order }, process.stdin, process.stdout)
  return signal === undefined ? 0 : exitCodes.signal + signal
}

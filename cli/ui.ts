/** `baton ui`: the live picture in the browser, for this machine only. ui/server.ts says how others are kept out. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type ConnectionOptions, connected, withConnection } from './connection.ts'
import { parseInterval } from './times.ts'
import type { Showing } from './ui/show.ts'

const port = new Option('--port <n>', 'of 127.0.0.1, the only address it serves')
  .argParser(parsePort)
  .default(0, 'one that is free')

const interval = new Option('--interval <time>', 'from one look at Redis to the next')
  .argParser(parseInterval)
  .default(1_000, '1s')

export function addUi(program: Command): void {
  withConnection(program.command('ui'))
    .description('all locks, their holders and their queues, live in the browser')
    .argument('[pattern]', 'only keys like this: *, ?, [abc], \\ to escape', '*')
    .addOption(port)
    .addOption(interval)
    .option('--allow-release', 'let the page take locks from their holders; it asks first')
    .addHelpText(
      'after',
      `
Examples:
  baton ui
  baton ui 'order:*' --interval 5s
  baton ui --allow-release --port 8080
  ssh -L 8080:127.0.0.1:8080 bastion baton ui --port 8080    # for the browser of another machine

It prints an address that is new each time, and serves it until Ctrl-C. Who has the whole address and can reach this machine's
loopback sees what it shows, so do not pass it on. While no page is open, Redis is not asked.`,
    )
    .action(async (pattern: string, options: ConnectionOptions & Omit<Showing, 'pattern'>) => {
      const { show } = await import('./ui/show.ts')
      await connected(options, {}, at => show(at, { ...options, pattern }))
    })
}

function parsePort(text: string): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new InvalidArgumentError('It must be a port, 1 to 65535, or 0 for one that is free.')
}

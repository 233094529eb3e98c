/** `baton ui` shows all locks live in the browser, on this machine only. ui/server.ts says how access is restricted. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type ConnectionOptions, connected, withConnection } from './connection.ts'
import { parseInterval } from './times.ts'
import type { Showing } from './ui/show.ts'

const port = new Option('--port <n>', 'port of 127.0.0.1 to serve the page on')
  .argParser(parsePort)
  .default(0, 'any free port')

const interval = new Option('--interval <time>', 'time between two readings of Redis')
  .argParser(parseInterval)
  .default(1_000, '1s')

export function addUi(program: Command): void {
  withConnection(program.command('ui'))
    .description('shows all locks, their holders and their queues, live in the browser')
    .argument(
      '[pattern]',
      'only keys that match this glob pattern, which may contain *, ? and [abc]; \\ escapes them',
      '*',
    )
    .addOption(port)
    .addOption(interval)
    .option('--allow-release', 'let the page take locks away from their holders, after a confirmation')
    .addHelpText(
      'after',
      `
Examples:
  baton ui
  baton ui 'order:*' --interval 5s
  baton ui --allow-release --port 8080
  ssh -L 8080:127.0.0.1:8080 bastion baton ui --port 8080    # baton runs on bastion, the browser here

Click on a lock to see its holders and its queue; for a semaphore with groups,
also each group, and why each waiter waits. The command prints an address with a
new secret each time, and serves the page there until Ctrl-C. Anyone who has the
whole address and can reach the loopback of this machine can see the page, so do
not pass it on. While no page is open, baton does not read from Redis.`,
    )
    .action(async (pattern: string, options: ConnectionOptions & Omit<Showing, 'pattern'>) => {
      const { show } = await import('./ui/show.ts')
      await connected(options, {}, at => show(at, { ...options, pattern }))
    })
}

function parsePort(text: string): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new InvalidArgumentError('It must be a port from 1 to 65535, or 0 for any free port.')
}

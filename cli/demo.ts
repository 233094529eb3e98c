/** `baton demo`: a flash sale that must not oversell, with a crash and a frozen worker. See demo/coordinator.ts. */
import type { Command } from 'commander'
import { urlOption } from './connection.ts'

export function addDemo(program: Command): void {
  program
    .command('demo')
    .description(
      'plays a flash sale under one fair lock: 4 workers handle 400 orders for 50 coupons; one worker is killed, another is frozen',
    )
    .option('--no-lock', 'play the sale without the lock, to see what goes wrong')
    .addOption(
      urlOption(
        'address of one server, not of a cluster (default: $REDIS_URL, else a server started for the demo, else none: in memory)',
      ),
    )
    .addHelpText(
      'after',
      `
Examples:
  baton demo
  baton demo --no-lock
  baton demo --url redis://127.0.0.1:6379

The demo takes about ten seconds, and leaves nothing in Redis. Exit codes: 0 if
nothing went wrong in the sale, otherwise 1.`,
    )
    .action(async (options: { lock: boolean; url?: readonly string[] }) => {
      const { perform } = await import('./demo/perform.ts')
      process.exitCode = await perform(options)
    })
}

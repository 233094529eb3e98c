/** `baton demo`: a flash sale that must not oversell, with a crash and a frozen worker. See demo/coordinator.ts. */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:os'
import type { Command } from 'commander'
import { Redis } from 'ioredis'
import { obtainRedis } from '../local-redis/index.ts'
import { runSale } from './demo/coordinator.ts'
import { loadOrders } from './demo/orders.ts'
import { now, sale } from './demo/sale.ts'
import { assess, asTable, asText, headline, passed, summary } from './demo/verdict.ts'
import { type Display, openDisplay } from './demo/view.ts'
import { judge } from './demo/witness.ts'

/** Exit codes; an interrupted demo ends with 128 + the signal's number, as shells have it. */
const violated = 1
const usage = 64
const unavailable = 69

/** A sale takes about ten seconds; one that takes this long is stuck. */
const patience = 60_000

interface Options {
  lock: boolean
  url?: string
}

export function addDemo(program: Command): void {
  program
    .command('demo')
    .description('a flash sale: 400 orders for 50 coupons, 4 workers, one killed and one frozen, one fair lock')
    .option('--no-lock', 'the same without the lock, to see what goes wrong')
    .option('--url <url>', 'Redis to use (default: $REDIS_URL, else a server that is started for the demo)')
    .action(async (options: Options) => {
      process.exitCode = await demo(options)
    })
}

async function demo({ lock, url }: Options): Promise<number> {
  if (process.platform === 'win32') {
    return complain('The demo freezes a process with SIGSTOP, which Windows has not.', unavailable)
  }
  if (url !== undefined && !isAddress(url)) {
    // The value is not quoted: a mistyped address still has its password.
    return complain('--url is not an address of the form redis://host:port or rediss://host:port', usage)
  }
  const display = openDisplay(process.stdout, process.env)
  const interruption = listenForInterruption()
  let server: Awaited<ReturnType<typeof reach>>
  try {
    server = await Promise.race([reach(url, display), interruption.happened])
  } catch (error) {
    if (!interruption.signal.aborted) return complain(messageOf(error), unavailable)
    // What is being prepared cannot be called off, but it ends with this process.
    process.exit(interruption.exitCode())
  }
  try {
    return await hold(server, lock, display, interruption.signal)
  } catch (error) {
    display.end()
    if (interruption.signal.aborted) return complain(messageOf(interruption.signal.reason), interruption.exitCode())
    if (server.redis.status === 'ready') return complain(messageOf(error), violated)
    return complain(`The connection to Redis was lost: ${messageOf(error)}`, unavailable)
  } finally {
    server.redis.disconnect()
    await server.stop()
    interruption.stopListening()
  }
}

async function hold(server: { redis: Redis; url: string }, locked: boolean, display: Display, signal: AbortSignal) {
  const orders = await loadOrders()
  const customers = new Set(orders.map(order => order.customer)).size
  const { print, say, watch, colours } = display
  const guard = locked ? 'one fair lock' : 'NO LOCK'
  const crowd = `${orders.length} orders of ${customers} customers, ${sale.workers} workers`
  print(colours.bold(`Flash sale: ${sale.stock} coupons, ${crowd}, ${guard}`))
  const startedAt = now()
  const prefix = `baton-demo:${randomBytes(6).toString('hex')}`
  const history = await runSale({ ...server, prefix, orders, locked, signal, patience, say, watch })
  const took = now() - startedAt
  display.end()

  const findings = judge(history)
  const rows = assess(findings, locked)
  const fine = passed(rows)
  print('')
  print(display.live ? asTable(rows, colours) : asText(rows))
  print('')
  if (!display.live) print(summary(findings, locked))
  print(colours.bold((fine ? colours.green : colours.red)(headline(rows, locked, took))))
  return fine ? 0 : violated
}

/** Redis as asked for, and a connection to it that answers. */
async function reach(url: string | undefined, display: Display) {
  const announce = display.print
  const server = url === undefined ? await obtainRedis({ announce }) : named(url, announce)
  // Never connected anew: keys of the run would be missing then, and the sale could not be judged.
  const redis = new Redis(server.url, { lazyConnect: true, connectTimeout: 5_000, retryStrategy: () => null })
  let reason: Error | undefined
  redis.on('error', error => {
    reason = error
  })
  try {
    await redis.connect()
    await redis.ping()
    return { ...server, redis }
  } catch (error) {
    if (redis.status !== 'end') redis.disconnect() // which would keep a connection that has ended for 2 s more
    await server.stop()
    throw new Error(`Redis cannot be reached: ${messageOf(reason ?? error)}`)
  }
}

function isAddress(url: string): boolean {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: '', hostname: '' }
  return hostname !== '' && ['redis:', 'rediss:'].includes(protocol)
}

function named(url: string, announce: (line: string) => void) {
  const { protocol, host } = new URL(url)
  announce(`Redis: the server --url names, ${protocol}//${host}`)
  return { url, stop: async () => {} }
}

/** Signals that end the demo, and a reader of its output that has gone away. The second one ends it on the spot. */
function listenForInterruption() {
  const controller = new AbortController()
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  let number = 0
  const interrupt = (name: 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGPIPE') => {
    if (controller.signal.aborted && name !== 'SIGPIPE') process.exit(128 + number)
    number ||= constants.signals[name]
    controller.abort(new Error(`Interrupted by ${name}`))
  }
  const brokenPipe = () => interrupt('SIGPIPE')
  for (const name of names) process.on(name, interrupt)
  process.stdout.on('error', brokenPipe)
  const happened = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true })
  })
  happened.catch(() => {}) // after the start nobody waits for it any more
  return {
    signal: controller.signal,
    happened,
    exitCode: () => 128 + number,
    stopListening: () => {
      for (const name of names) process.off(name, interrupt)
    },
  }
}

function complain(message: string, exitCode: number): number {
  console.error(message)
  return exitCode
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

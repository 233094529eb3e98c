/** Performs the demo from start to verdict: finds Redis, runs the sale, and judges the result. */
import { randomBytes } from 'node:crypto'
import { messageOf } from '../../local-redis/error-message.ts'
import { NoRedisError, obtainRedis } from '../../local-redis/index.ts'
import { checkedAddress, namedServer, type ServerAddress } from '../address.ts'
import { exitCodes, Failure } from '../failure.ts'
import { reachServer } from '../reach.ts'
import { exitCodeOf, onEnding } from '../signals.ts'
import { runSale } from './coordinator.ts'
import { type Ground, onRedis } from './ground.ts'
import { loadOrders } from './orders.ts'
import { now, sale } from './sale.ts'
import { assess, asTable, asText, headline, passed, summary } from './verdict.ts'
import { type Display, openDisplay } from './view.ts'
import { judge } from './witness.ts'

/** The longest time that a sale may take, in ms. It usually takes about ten seconds. */
const patience = 60_000

interface Options {
  readonly lock: boolean
  readonly url?: readonly string[]
}

/** Resolves to the exit code: 0 if nothing went wrong in the sale. Rejects with Failure if the sale cannot finish. */
export async function perform({ lock, url }: Options): Promise<number> {
  if (process.platform === 'win32') {
    throw new Failure(
      'the demo freezes a process with SIGSTOP, which Windows does not have; run the demo on Linux or macOS',
      exitCodes.unavailable,
    )
  }
  const address = namedServer(url, 'baton demo')
  const display = openDisplay(process.stdout, process.env)
  const interruption = listenForInterruption()
  let ground: Ground
  try {
    ground = await Promise.race([prepare(url === undefined ? undefined : address, display), interruption.happened])
  } catch (error) {
    if (!interruption.signal.aborted) throw failureOf(error, exitCodes.unavailable)
    // The preparation cannot be cancelled, so an interruption ends the whole process.
    process.exit(interruption.exitCode())
  }
  try {
    return await hold(ground, lock, display, interruption.signal)
  } catch (error) {
    display.end()
    if (interruption.signal.aborted) throw failureOf(interruption.signal.reason, interruption.exitCode())
    if (!ground.lost()) throw failureOf(error, exitCodes.no)
    throw new Failure(`the connection to Redis was lost: ${messageOf(error)}`, exitCodes.unavailable)
  } finally {
    await ground.stop()
    interruption.stopListening()
  }
}

async function hold(ground: Ground, locked: boolean, display: Display, signal: AbortSignal) {
  const orders = await loadOrders()
  const customers = new Set(orders.map(order => order.customer)).size
  const { print, say, watch, colours } = display
  const guard = locked ? 'one fair lock' : 'NO LOCK'
  const crowd = `${orders.length} orders of ${customers} customers, ${sale.workers} workers`
  print(colours.bold(`Flash sale: ${sale.stock} coupons, ${crowd}, ${guard}`))
  const startedAt = now()
  const history = await runSale({ ground, orders, locked, signal, patience, say, watch })
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
  return fine ? 0 : exitCodes.no
}

/**
 * Finds the requested Redis, and opens a connection that is ready for commands. The connection never reconnects: if it
 * is lost, Redis may have been restarted and may have lost keys of the run.
 */
async function prepare(named: ServerAddress | undefined, display: Display): Promise<Ground> {
  const announce = display.print
  const server = named ? use(named, announce) : await found(announce)
  if (!server) return (await import('./in-memory.ts')).inMemory()
  try {
    const redis = await reachServer(named ?? startedAt(server.url))
    return onRedis(redis, server.url, `baton-demo:${randomBytes(6).toString('hex')}`, () => server.stop())
  } catch (error) {
    await server.stop()
    throw error
  }
}

/** Undefined: there is no Redis on this machine, so the sale is played in memory. */
async function found(announce: (line: string) => void) {
  try {
    return await obtainRedis({ announce })
  } catch (error) {
    // Whoever names an image wants to see that server.
    if (!(error instanceof NoRedisError) || process.env['BATON_REDIS_IMAGE']) throw error
    announce(
      'Redis: none found, so this is played in the memory of one process; workers are killed and frozen by disconnecting them',
    )
    announce(
      'To see it with processes and a Redis: install redis-server, or give an address: baton demo --url redis://…',
    )
    return undefined
  }
}

function startedAt(url: string): ServerAddress {
  return checkedAddress(url, 'the address of the server that was started') as ServerAddress
}

function use({ url, shown }: ServerAddress, announce: (line: string) => void) {
  announce(`Redis: the server that --url names, ${shown}`)
  return { url, stop: async () => {} }
}

/**
 * Reacts to signals that end the demo, and to the closing of its output. The first of these events interrupts the demo.
 * Any signal after that ends the process immediately.
 */
function listenForInterruption() {
  const controller = new AbortController()
  let exitCode = 0
  const interrupt = (name: NodeJS.Signals) => {
    if (controller.signal.aborted && name !== 'SIGPIPE') process.exit(exitCode)
    exitCode ||= exitCodeOf(name)
    controller.abort(new Error(`the demo was interrupted by ${name}`))
  }
  const brokenPipe = () => interrupt('SIGPIPE')
  const stopListening = onEnding(interrupt)
  process.stdout.on('error', brokenPipe)
  const happened = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true })
  })
  // After the preparation, no code awaits `happened`. With this handler, Node does not treat its rejection as
  // unhandled, which would end the process.
  happened.catch(() => {})
  return {
    signal: controller.signal,
    happened,
    exitCode: () => exitCode,
    stopListening,
  }
}

function failureOf(error: unknown, exitCode: number): Failure {
  return error instanceof Failure ? error : new Failure(messageOf(error), exitCode)
}

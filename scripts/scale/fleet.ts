/**
 * Measures two thousand clients of one server. Each client has its own connections, inbox and heartbeat, as in a
 * process of its own.
 */
import { Crew } from './crew.ts'
import type { Fleet } from './figures.ts'
import { each, gained, Meter, memories } from './meter.ts'
import { startServer, watchScripts } from './server.ts'

const CLIENTS = 2_000
const PROCESSES = 4
/** The number of clients per process. */
const SHARE = CLIENTS / PROCESSES
const CYCLES = 10_000
/** How long idle clients are observed, in s: three heartbeats. */
const WATCHED = 10

export async function fleet(progress: (line: string) => void): Promise<Fleet[]> {
  await using own = await startServer()
  await using crew = new Crew(PROCESSES)
  const { server } = own
  const meter = new Meter(crew, [server])
  const all: Fleet[] = []
  let before = await memories(crew, server)
  let clients = 0

  /** Measures the memory that `ask` adds for each client, and then what all clients cost while nothing happens. */
  const step = async (what: string, ask: () => Promise<unknown>, cycles = 0) => {
    progress(`${clients} clients, ${what}`)
    const longest = await watchScripts(server)
    const spent = await meter.of(ask)
    const after = await memories(crew, server)
    const idle = await meter.idle(WATCHED)
    const connections = /^connected_clients:(\d+)/m.exec(await server.redis.info('clients'))?.[1]
    all.push({
      what,
      clients,
      // The connection of this process is not counted.
      connections: Number(connections) - 1,
      bytes: each(gained(before, after), clients),
      ...idle,
      ...(cycles > 0 ? { cycle: each(spent, cycles) } : {}),
      longest: await longest(),
    })
    before = after
  }
  const open = (clients: number) => crew.ask('open', { url: own.running.url, cluster: false, clients })
  const cycle = () => {
    const terms = { count: CYCLES, callers: 50, keys: 1_000, once: false }
    return crew.ask('cycle', process => ({ prefix: `cycle ${process}`, ...terms }))
  }
  /**
   * Makes all clients wait for one lock. `of` is the process that holds the lock: 0 for the first process, 1 for the
   * second.
   */
  const park = (of: number, fair: boolean) => crew.ask('park', { prefix: `mine ${of}`, count: SHARE, keys: 1, fair })

  clients = PROCESSES
  await open(1)
  await step('all take locks of their own', cycle, CYCLES * PROCESSES)
  clients = CLIENTS
  await step('connected', () => open(SHARE - 1))
  await step('all take locks of their own', cycle, CYCLES * PROCESSES)
  await step('each holds a lock', () => crew.ask('hold', process => ({ prefix: `mine ${process}`, count: SHARE })))
  await step('all wait for one lock, fair', () => park(0, true))
  await step('all wait for one lock, unfair', () => park(1, false))
  await step('what they hold is released', () => crew.ask('releaseAll', {}))
  return all
}

/**
 * Measures clusters of one, two and three masters: what an acquisition costs each master if the keys are spread over
 * all masters.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from '../../benchmarks/harness/server.ts'
import { Crew } from './crew.ts'
import type { Masters } from './figures.ts'
import { each, Meter, round } from './meter.ts'
import { startCluster } from './server.ts'

const KEYS = 3_000
/**
 * How many acquisitions each process makes for each master. So a master serves the same number of acquisitions,
 * whatever the number of masters.
 */
const CYCLES = 10_000
const CALLERS = 50
const PROCESSES = 2
const IDLE = 5

export async function masters(progress: (line: string) => void): Promise<Masters[]> {
  const all: Masters[] = []
  for (const count of [1, 2, 3]) {
    progress(`a cluster of ${count}`)
    all.push(await cluster(count))
  }
  return all
}

async function cluster(count: number): Promise<Masters> {
  await using own = await startCluster(count)
  const { servers } = own
  await using crew = new Crew(PROCESSES)
  await crew.ask('open', { url: own.url, cluster: true, clients: 1 })
  const terms = { callers: CALLERS * count, keys: KEYS, once: false }
  const cycle = (count: number) => crew.ask('cycle', process => ({ prefix: `order ${process}`, count, ...terms }))
  const acquisitions = CYCLES * PROCESSES * count
  await cycle(KEYS)

  const meter = new Meter(crew, servers)
  const idle = await meter.of(() => sleep(IDLE * 1_000))
  const before = await Promise.all(servers.map(scripts))
  const busy = await meter.of(() => cycle(CYCLES * count))
  const after = await Promise.all(servers.map(scripts))
  return {
    masters: count,
    acquisitions,
    cycle: each(busy, acquisitions),
    each: servers.map((_, i) => {
      // An acquisition and its release are two script calls.
      const served = (after[i]!.calls - before[i]!.calls) / 2
      const inScripts = round((after[i]!.micros - before[i]!.micros) / served)
      return { acquisitions: served, server: round(busy.servers[i]! / served), inScripts }
    }),
    idle: round(idle.server / count / idle.seconds),
  }
}

/** Returns the number of script calls so far, and the time that they took in µs. */
async function scripts(server: Server): Promise<{ calls: number; micros: number }> {
  const { calls, usec } = await server.snapshot()
  const of = (counts: ReadonlyMap<string, number>) => (counts.get('evalsha') ?? 0) + (counts.get('eval') ?? 0)
  return { calls: of(calls), micros: of(usec) }
}

/** Measures `tryLock`, `lock`, `stats`, `close` and re-entry: each might become slower with many locks or waiters. */
import { Crew } from './crew.ts'
import type { Chores } from './figures.ts'
import { each, Meter, round } from './meter.ts'
import { startCluster, startServer } from './server.ts'

const ONE_BY_ONE = 10_000
const MANY_WAITERS = 200_000
const MANY_HOLDS = 10_000

export async function chores(progress: (line: string) => void): Promise<Chores> {
  progress('single attempts')
  const [lock, tryLock] = [await uncontended(false), await uncontended(true)]
  progress('stats()')
  const stats = []
  for (const locks of [10, 10_000]) stats.push({ locks, micros: await statsOf(locks) })
  progress(`close() with ${MANY_WAITERS} waiters`)
  const close = await closing()
  const holds = []
  for (const cluster of [false, true]) {
    progress(`${MANY_HOLDS} holds of one owner${cluster ? ', in a cluster' : ''}`)
    holds.push(await manyHolds(cluster))
  }
  return { lock, tryLock, stats, close, holds }
}

/** Measures the client's CPU for one acquisition by a single caller. */
async function uncontended(once: boolean): Promise<number> {
  await using own = await startServer()
  await using crew = new Crew(1)
  await crew.ask('open', { url: own.running.url, cluster: false, clients: 1 })
  const cycle = (count: number) => crew.ask('cycle', { prefix: 'key', count, callers: 1, keys: 1, once })
  await cycle(ONE_BY_ONE)
  const spent = await new Meter(crew, [own.server]).of(() => cycle(ONE_BY_ONE))
  return each(spent, ONE_BY_ONE).client
}

async function statsOf(locks: number): Promise<number> {
  await using own = await startServer()
  await using crew = new Crew(1)
  await crew.ask('open', { url: own.running.url, cluster: false, clients: 1 })
  await crew.ask('hold', { prefix: 'key', count: locks })
  return round(await crew.ask('stats', {}))
}

async function closing(): Promise<Chores['close']> {
  await using own = await startServer()
  await using holder = new Crew(1)
  await using waiting = new Crew(1)
  const place = { url: own.running.url, cluster: false, clients: 1 }
  await holder.ask('open', place)
  await holder.ask('hold', { prefix: 'key', count: 1 })
  await waiting.ask('open', place)
  await waiting.ask('park', { prefix: 'key', count: MANY_WAITERS, keys: 1, fair: true })
  let ms = 0
  const spent = await new Meter(waiting, [own.server]).of(async () => {
    ms = await waiting.ask('close', {})
  })
  return { waiters: MANY_WAITERS, client: each(spent, MANY_WAITERS).client, ms: Math.round(ms) }
}

async function manyHolds(cluster: boolean): Promise<Chores['holds'][number]> {
  await using own = cluster ? await startCluster(1) : await startServer()
  await using crew = new Crew(1)
  const { url, servers } = 'servers' in own ? own : { url: own.running.url, servers: [own.server] }
  await crew.ask('open', { url, cluster, clients: 1 })
  const meter = new Meter(crew, servers)
  const taking = await meter.of(() => crew.ask('reenter', { prefix: 'key', count: MANY_HOLDS }))
  const releasing = await meter.of(() => crew.ask('releaseAll', {}))
  return {
    where: cluster ? 'a cluster' : 'one server',
    holds: MANY_HOLDS,
    taking: each(taking, MANY_HOLDS).client,
    releasing: each(releasing, MANY_HOLDS).client,
  }
}

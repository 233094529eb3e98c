/** Measures one process that holds a hundred thousand locks, and renews them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Crew } from './crew.ts'
import type { Held } from './figures.ts'
import { each, gained, Meter, memories, round } from './meter.ts'
import { startServer, watchScripts } from './server.ts'

const LOCKS = 100_000
/** How long the renewals are observed, in s: one lease, in which each lock is renewed three times. */
const WATCHED = 30

export async function held(progress: (line: string) => void): Promise<Held> {
  progress(`${LOCKS} held locks`)
  await using own = await startServer()
  await using process = new Crew(1)
  const { server } = own
  await process.ask('open', { url: own.running.url, cluster: false, clients: 1 })
  const meter = new Meter(process, [server])

  const before = await memories(process, server)
  const longest = await watchScripts(server)
  const taking = await meter.of(() => process.ask('hold', { prefix: 'order', count: LOCKS }))
  const full = await memories(process, server)
  // The locks are renewed for the first time after 10 s. The measurement begins then.
  await sleep(10_000)
  await process.ask('longestTurn', {})
  const renewing = await meter.of(() => sleep(WATCHED * 1_000))
  const longestTurn = round(await process.ask('longestTurn', {}))
  const lost = await process.ask('lost', {})
  const releasing = await meter.of(() => process.ask('releaseAll', {}))
  const free = await memories(process, server)
  return {
    locks: LOCKS,
    bytes: each(gained(before, full), LOCKS),
    freeBytes: round(gained(before, free).server / LOCKS),
    taking: each(taking, LOCKS),
    releasing: each(releasing, LOCKS),
    renewing: each(renewing, renewing.seconds),
    renewalsPerSecond: round(renewing.commands / renewing.seconds),
    longestTurn,
    lost,
    longest: await longest(),
  }
}

/** Measures one process with tens of thousands of waiters. */
import { Crew } from './crew.ts'
import type { Parked } from './figures.ts'
import { each, gained, Meter, memories } from './meter.ts'
import { startServer, watchScripts } from './server.ts'

const WAITERS = 50_000
/**
 * The number of keys, and of waiters, in the cases in which each waiter has a key of its own. A client sends separate
 * requests for each key, so these waiters cost more than the same number of waiters of one key.
 */
const KEYS = 10_000
/** How long idle waiters are observed, in s: six heartbeats. */
const WATCHED = 20

const settings = [
  { what: 'fair, one key', fair: true, waiters: WAITERS, keys: 1 },
  { what: 'fair, a key each', fair: true, waiters: KEYS, keys: KEYS },
  { what: 'unfair, one key', fair: false, waiters: WAITERS, keys: 1 },
  { what: 'unfair, a key each', fair: false, waiters: KEYS, keys: KEYS },
]

export async function parked(progress: (line: string) => void): Promise<Parked[]> {
  const all: Parked[] = []
  for (const setting of settings) {
    progress(`${setting.waiters} waiters, ${setting.what}`)
    all.push(await one(setting))
  }
  return all
}

async function one({ what, fair, waiters, keys }: (typeof settings)[number]): Promise<Parked> {
  await using own = await startServer()
  await using holder = new Crew(1)
  await using waiting = new Crew(1)
  const { server } = own
  const place = { url: own.running.url, cluster: false, clients: 1 }
  await holder.ask('open', place)
  await waiting.ask('open', place)
  await holder.ask('hold', { prefix: 'key', count: keys })
  const order = { prefix: 'key', count: waiters, keys, fair }
  const meter = new Meter(waiting, [server])

  const before = await memories(waiting, server)
  const longest = await watchScripts(server)
  const parking = await meter.of(() => waiting.ask('park', order))
  const after = await memories(waiting, server)
  // The meter does not count the CPU of the process that holds the locks and renews them.
  const idle = await meter.idle(WATCHED)
  const alone = await longest()
  const watch = await watchScripts(server)
  let ms = 0
  const closing = await meter.of(async () => {
    ms = await waiting.ask('close', {})
  })
  return {
    what,
    waiters,
    keys,
    bytes: each(gained(before, after), waiters),
    parking: each(parking, waiters),
    ...idle,
    longest: alone,
    closing: { ...each(closing, waiters), ms: Math.round(ms), longest: await watch() },
  }
}

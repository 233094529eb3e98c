/**
 * A first look at the cost of a lock on this machine, in ratios to what Redis can do at all. Interleaved rounds
 * (A B C A B C), medians with their range; read the ratios, not the absolute numbers: loopback and idle cores flatter
 * or punish them by more than the differences that matter.
 *
 * Floors, each on one connection:
 *   set/del    SET NX PX, then compare-and-delete by EVALSHA: an uncontended lock without order, renewal or fencing
 */
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { Redis } from 'ioredis'
import { LockClient } from '../src/index.ts'
import { obtainRedis } from '../src/local-redis/index.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '1' } },
})
const rounds = Number(values.rounds)
const seconds = Number(values.seconds)

/** Runs cycles of one kind for a while; `cycle` is called by each of `callers` loops. */
interface Contender {
  readonly scenario: string
  readonly name: string
  readonly callers: number
  cycle(caller: number): Promise<unknown>
}

const server = await obtainRedis({ announce: console.log })
const plain = new Redis(server.url)
const clients = [new LockClient(server.url), new LockClient(server.url)]
const one = clients[0] as LockClient

const compareAndDelete = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
const sha = String(await plain.script('LOAD', compareAndDelete))

async function floorCycle(): Promise<void> {
  const token = randomUUID()
  await plain.set('bench:floor', token, 'PX', 30_000, 'NX')
  await plain.evalsha(sha, 1, 'bench:floor', token)
}

async function lockCycle(locks: LockClient, key: string, fair: boolean): Promise<void> {
  const lease = await locks.lock(key, { fair })
  await lease.release()
}

const client = (caller: number) => clients[caller % clients.length] as LockClient
const contenders: Contender[] = [
  { scenario: 'uncontended', name: 'set/del (floor)', callers: 1, cycle: floorCycle },
  { scenario: 'uncontended', name: 'redis-baton', callers: 1, cycle: () => lockCycle(one, 'bench:1', false) },
  { scenario: '2 x 8 waiters', name: 'redis-baton', callers: 16, cycle: n => lockCycle(client(n), 'bench:2', false) },
  {
    scenario: '2 x 8 waiters',
    name: 'redis-baton, fair',
    callers: 16,
    cycle: n => lockCycle(client(n), 'bench:3', true),
  },
]

/** Cycles a second. */
async function measure({ callers, cycle }: Contender, ms: number): Promise<number> {
  let cycles = 0
  const begin = performance.now()
  const loop = async (caller: number) => {
    while (performance.now() - begin < ms) {
      await cycle(caller)
      cycles += 1
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, caller) => loop(caller)))
  return cycles / ((performance.now() - begin) / 1000)
}

const results = new Map<Contender, number[]>(contenders.map(contender => [contender, []]))
for (const contender of contenders) await measure(contender, 200)
for (let round = 0; round < rounds; round++) {
  for (const contender of contenders) results.get(contender)?.push(await measure(contender, seconds * 1000))
}

const table = new Table({ head: ['scenario', 'lock', 'cycles/s (median)', 'min–max', 'µs a cycle'] })
for (const [{ scenario, name }, rates] of results) {
  const sorted = rates.toSorted((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0
  const range = `${Math.round(sorted[0] ?? 0)}–${Math.round(sorted.at(-1) ?? 0)}`
  table.push([scenario, name, Math.round(median), range, (1e6 / median).toFixed(0)])
}
console.log(table.toString())

await Promise.all(clients.map(locks => locks.close()))
plain.disconnect()
await server.stop()

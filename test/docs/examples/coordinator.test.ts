/** examples/coordinator.ts: three workers share six shards. One worker is killed. */
import { expect, test } from 'vitest'
import { eventually } from '../../kit/time.ts'
import { Scene } from './scene.ts'

const scene = new Scene()
const shards = [0, 1, 2, 3, 4, 5]
const keyOf = (shard: number) => `example:shard:{${shard}}`

/**
 * Waits until each worker holds the locks of as many shards as `wanted` says. Returns the name of the worker that holds
 * each shard.
 */
async function shared(wanted: Record<string, number>): Promise<string[]> {
  let names: string[] = []
  await eventually(async () => {
    const states = await Promise.all(shards.map(shard => scene.locks.inspect(keyOf(shard))))
    names = states.map(({ label }) => label ?? 'nobody')
    return Object.entries(wanted).every(([name, count]) => names.filter(each => each === name).length === count)
  }, 15_000)
  return names
}

interface Entry {
  readonly token: number
  readonly job: number
  readonly worker: string
}

/** Reads the work that has been done for a shard, in order. */
async function log(shard: number): Promise<Entry[]> {
  const lines = await scene.redis.lrange(`${keyOf(shard)}:log`, 0, -1)
  return lines.map(line => {
    const [token, job, worker] = line.split(' ') as [string, string, string]
    return { token: Number(token), job: Number(job), worker }
  })
}

test('shards are divided evenly, go from a killed worker to the others, and every job is done once', async () => {
  const start = (NAME: string) => scene.start('coordinator.ts', { NAME, LEASE_MS: '1200', TERM_MS: '2000' })
  const [a, b, c] = [start('a'), start('b'), start('c')]
  await Promise.all([a, b, c].map(worker => worker.line(/ready$/)))
  const before = await shared({ a: 2, b: 2, c: 2 })

  await b.end('SIGKILL')
  const orphans = shards.filter(shard => before[shard] === 'b')
  const left = await Promise.all(orphans.map(async shard => (await log(shard)).length))
  await shared({ a: 3, c: 3 })
  // After the kill, other workers do the next jobs of the shards that the killed worker had.
  await eventually(async () => {
    const logs = await Promise.all(orphans.map(log))
    return logs.every((entries, i) => entries.length > left[i]! && entries.at(-1)!.worker !== 'b')
  })

  expect(await Promise.all([a.end('SIGTERM'), c.end('SIGTERM')])).toEqual([0, 0])
  for (const shard of shards) {
    const entries = await log(shard)
    expect(entries.map(({ job }) => job)).toEqual(entries.map((_, i) => i + 1))
    const changes = entries.slice(1).map((entry, i) => [entries[i]!, entry] as const)
    for (const [earlier, later] of changes) {
      if (later.worker === earlier.worker) expect(later.token).toBeGreaterThanOrEqual(earlier.token)
      else expect(later.token).toBeGreaterThan(earlier.token)
    }
  }
  // The store refuses a write that comes too late, or at the same time as another worker's write. It has refused none.
  const refused = [a, b, c].flatMap(({ lines }) => lines).filter(line => line.includes('refused'))
  expect(refused).toEqual([])
  await scene.expectNothingLeft()
}, 60_000)

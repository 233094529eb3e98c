/**
 * examples/cache-refill.ts: four processes read a price list from a cache. Each new edition of the list is fetched into
 * the cache once.
 */
import { expect, test } from 'vitest'
import { example, runNode } from '../../kit/program.ts'
import { Scene } from './scene.ts'

const scene = new Scene()
const editions = Array.from({ length: 40 }, (_, i) => `${i + 1}`)

/**
 * Runs the example, which must succeed. Returns what it prints, and the editions of the price list that it has
 * requested.
 */
async function run(...args: string[]): Promise<{ given: number; asked: string[]; mixed: number }> {
  const { code, output, errors } = await runNode(example('cache-refill.ts', ...args), { env: { REDIS_URL: scene.url } })
  expect(code, errors).toBe(0)
  const form =
    /^(\d+) answers by 4 processes\n40 editions, asked of the origin (\d+) times\nanswers of two editions: (\d+)\n$/
  const [, given, times, mixed] = (form.exec(output) ?? []).map(Number)
  const asked = await scene.redis.lrange('example:prices:asked', 0, -1)
  expect(times).toBe(asked.length)
  return { given: given!, asked, mixed: mixed! }
}

test('however many readers miss the cache at once, each edition is requested once, and no answer mixes editions', async () => {
  const { given, asked, mixed } = await run()
  expect(asked).toEqual(editions)
  expect(mixed).toBe(0)
  expect(given).toBeGreaterThan(editions.length)
  expect(await scene.locks.readWrite('example:prices').inspect()).toMatchObject({ locked: false, waiters: [] })
}, 100_000)

test('without the lock many processes request an edition, and answers mix two editions', async () => {
  const { asked, mixed } = await run('--no-lock')
  expect(new Set(asked)).toEqual(new Set(editions))
  expect(asked.length).toBeGreaterThan(editions.length)
  expect(mixed).toBeGreaterThan(0)
}, 100_000)

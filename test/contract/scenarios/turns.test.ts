/** Processes that want the same lock all the time take turns at it, without a queue. */
import { expect, test } from 'vitest'
import { Child } from '../../kit/process.ts'
import { freshKey, plainRedis, redisUrl } from '../../kit/redis.ts'
import type { Loop } from './looper.ts'

const names = ['A', 'B', 'C']
/** Until each has come into the round. */
const beginning = 30
const turns = 240

/** ms, beside a round trip. */
const hold = 5

test('three processes with a caller each share the lock', { timeout: 60_000 }, async () => {
  const key = freshKey('turns')
  const log = `log of ${key}`
  const children = names.map(name => {
    const loop: Loop = { url: redisUrl(), key, log, name, hold, length: beginning + turns }
    return new Child(new URL('looper.ts', import.meta.url), [JSON.stringify(loop)])
  })
  await Promise.all(children.map(child => child.message<{ type: string }>(({ type }) => type === 'ready')))
  for (const child of children) child.send({ type: 'go' })
  await Promise.all(children.map(child => child.message<{ type: string }>(({ type }) => type === 'done', 50_000)))

  const held = (await plainRedis().lrange(log, beginning, beginning + turns - 1)) as string[]
  const shares = names.map(name => held.filter(holder => holder === name).length)
  expect(Math.max(...shares)).toBeLessThanOrEqual(2 * Math.min(...shares))
  // Not only in the end, but all the time: the next is hardly ever the one before.
  const changes = held.filter((name, i) => i > 0 && name !== held[i - 1]).length
  expect(changes).toBeGreaterThan((turns * 2) / 3)
})

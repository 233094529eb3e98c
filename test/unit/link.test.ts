/** The connections of a client: what the return of one means for the others. */
import type { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { settingsOf } from '../../src/options.ts'
import { Link } from '../../src/redis/link.ts'
import { FakeClock } from './fake-clock.ts'
import { FakeRedis } from './fake-redis.ts'

const names = ['commands', 'messages', 'confirmations'] as const
const nobody = () => {}

/** A client's connections, all of which have been tried in vain for so long that there is a second between attempts. */
async function down() {
  const clock = new FakeClock()
  const made: FakeRedis[] = []
  const source = {
    options: {},
    duplicate() {
      const redis = Object.assign(new FakeRedis(clock), { subscribe: () => new Promise(nobody) })
      made.push(redis)
      return redis
    },
  }
  const link = new Link(source as unknown as Redis, settingsOf({ replicas: { min: 1, timeout: 100 } }), clock, {
    granted: nobody,
    lost: nobody,
    unlocked: nobody,
    entered: nobody,
    down: nobody,
    up: nobody,
    heard: nobody,
    disconnected: nobody,
    reconnected: nobody,
    busy: () => false,
  })
  link.open()
  expect(made.length).toBe(names.length)
  for (let failed = 0; failed < 12; failed++) {
    for (const redis of made) if (redis.status === 'connecting') redis.break(new Error('connect ECONNREFUSED'))
    await clock.advance(1_250)
  }
  return { clock, link, made }
}

// Break: `other.hurry()` in src/redis/link.ts: it comes up to 1.25 s later, and until then its waiters are passed over.
test.each(names)('I4 those that wait for their next attempt do not any more once another is back: %s', async name => {
  const { clock, link, made } = await down()
  const back = made[names.indexOf(name)] as FakeRedis
  const others = made.filter(redis => redis !== back)
  // Their attempts fail as late as that of the first one can succeed.
  for (const redis of others) redis.break(new Error('connect ECONNREFUSED'))
  const before = others.map(redis => redis.connects.length)
  await back.ready()
  expect(others.map(redis => redis.connects.length)).toEqual(before.map(count => count + 1))
  // Once for each return, not for ever.
  for (const redis of others) redis.break(new Error('connect ECONNREFUSED'))
  await clock.advance(100)
  expect(others.map(redis => redis.connects.length)).toEqual(before.map(count => count + 1))
  link.close()
  expect(clock.armed).toBe(0)
})

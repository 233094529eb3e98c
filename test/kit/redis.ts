/** What a test needs of Redis: clients that are closed behind it, keys of its own, and what is left in the server. */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { inject, onTestFinished } from 'vitest'
import { findServerSource, type RunningServer } from '../../local-redis/index.ts'
import { type ClientOptions, LockClient } from '../../src/index.ts'
import { place } from './place.ts'

export { keysWith } from './admin.ts'

/** The URL of the Redis that all tests share. Only where it is a single server: a contract test has its `place` instead. */
export function redisUrl(): string {
  const url = inject('redisUrl')
  if (!url) throw new Error(`the topology ${inject('topology')} has no URL`)
  return url
}

/** A lock client, closed after the test. */
export function client(
  options: ClientOptions = {},
  redis: ConstructorParameters<typeof LockClient>[0] = place().source(options),
): LockClient {
  const locks = new LockClient(redis, options)
  onTestFinished(() => locks.close())
  return locks
}

/** A plain connection to look at the server with, closed after the test. */
export function plainRedis(url: string = redisUrl()): Redis {
  const redis = new Redis(url)
  onTestFinished(() => {
    redis.disconnect()
  })
  return redis
}

/** A key that no other test uses. */
export function freshKey(name = 'key'): string {
  return `${name}-${randomUUID()}`
}

/** A server of the test's own, for tests that break it; stopped after the test. */
export async function ownServer(...args: string[]): Promise<RunningServer> {
  const source = await findServerSource()
  const server = await source.start({ args })
  onTestFinished(() => server.stop())
  return server
}

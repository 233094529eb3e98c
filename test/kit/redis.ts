/** What a test needs of Redis: clients that are closed behind it, keys of its own, and what is left in the server. */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, inject, onTestFinished } from 'vitest'
import { findServerSource, type RunningServer } from '../../local-redis/index.ts'
import { type ClientOptions, LockClient } from '../../src/index.ts'
import { keysWith } from './admin.ts'
import { place } from './place.ts'
import { eventually } from './time.ts'

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
  Client: new (...args: ConstructorParameters<typeof LockClient>) => LockClient = LockClient,
): LockClient {
  const locks = new Client(redis, options)
  onTestFinished(() => locks.close())
  return locks
}

/** Clients of their own: nothing is shared between them but Redis. */
export function clients<N extends number>(count: N): LockClient[] {
  return Array.from({ length: count }, () => client())
}

/** A plain connection to look at the server with, closed after the test. */
export function plainRedis(url: string = redisUrl()): Redis {
  const redis = new Redis(url)
  onTestFinished(() => {
    redis.disconnect()
  })
  return redis
}

/** A connection that asks whatever the state of the server, and reports by its promises only; closed after the test. */
export function bluntRedis(url: string): Redis {
  const redis = new Redis(url, { enableReadyCheck: false, retryStrategy: () => 20 })
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  return redis
}

/** A key that no other test uses. */
export function freshKey(name = 'key'): string {
  return `${name}-${randomUUID()}`
}

/** A server of the test's own, for tests that break it; stopped after the test. */
export function ownServer(...args: string[]): Promise<RunningServer> {
  return stopped({ args })
}

/** One that works in this folder. */
export function serverIn(dir: string, ...args: string[]): Promise<RunningServer> {
  return stopped({ args, dir })
}

async function stopped(options: { args: string[]; dir?: string }): Promise<RunningServer> {
  const source = await findServerSource()
  const server = await source.start(options)
  onTestFinished(() => server.stop())
  return server
}

/** Fails unless the lock is soon free with nobody queued. Memory of its tokens and of heartbeats expires by itself. */
export async function nothingLeft(redis: Redis, locks: LockClient, key: string): Promise<void> {
  await eventually(async () => {
    const { locked, holds, waiters } = await locks.inspect(key)
    return !locked && holds === 0 && waiters.length === 0
  })
  await eventually(async () => (await keysWith(redis, `{${key}}:queue`)).length === 0)
  for (const name of await keysWith(redis, key)) expect(await redis.pttl(name), name).not.toBe(-1)
}

/**
 * What tests need of Redis: clients that are closed afterwards, fresh keys, and a check that nothing is left on the
 * server.
 */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, inject, onTestFinished } from 'vitest'
import { findServerSource, type RunningServer } from '../../local-redis/index.ts'
import { type ClientOptions, LockClient } from '../../src/index.ts'
import { keysWith } from './admin.ts'
import { place } from './place.ts'
import { eventually } from './time.ts'

export { keysWith } from './admin.ts'

/**
 * The URL of the Redis server that all tests share. Only for the single-server topology: a contract test uses its
 * `place` instead.
 */
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

/** Independent clients, which share nothing but Redis. */
export function clients<N extends number>(count: N): LockClient[] {
  return Array.from({ length: count }, () => client())
}

/** A plain connection to inspect the server with, closed after the test. */
export function plainRedis(url: string = redisUrl()): Redis {
  const redis = new Redis(url)
  onTestFinished(() => {
    redis.disconnect()
  })
  return redis
}

/**
 * A connection that sends commands whatever the server's state, and reports errors only through its promises. Closed
 * after the test.
 */
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

/** A server of the test's own, for tests that break it. Stopped after the test. */
export function ownServer(...args: string[]): Promise<RunningServer> {
  return stopped({ args })
}

/** A server with this working folder, stopped after the test. */
export function serverIn(dir: string, ...args: string[]): Promise<RunningServer> {
  return stopped({ args, dir })
}

async function stopped(options: { args: string[]; dir?: string }): Promise<RunningServer> {
  const source = await findServerSource()
  const server = await source.start(options)
  onTestFinished(() => server.stop())
  return server
}

/**
 * Fails unless the lock is soon free and its queue empty. Its keys for tokens and heartbeats may remain: they expire on
 * their own.
 */
export async function nothingLeft(redis: Redis, locks: LockClient, key: string): Promise<void> {
  await eventually(async () => {
    const { locked, holds, waiters } = await locks.inspect(key)
    return !locked && holds === 0 && waiters.length === 0
  })
  await eventually(async () => (await keysWith(redis, `{${key}}:queue`)).length === 0)
  for (const name of await keysWith(redis, key)) expect(await redis.pttl(name), name).not.toBe(-1)
}

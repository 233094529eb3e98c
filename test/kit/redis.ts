/**
 * Helpers for tests with Redis: clients that are closed after the test, fresh keys, and a check that nothing is left on
 * the server.
 */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { test as base, expect, inject, onTestFinished } from 'vitest'
import { findServerSource, type RunningServer } from '../../local-redis/index.ts'
import { type ClientOptions, LockClient } from '../../src/index.ts'
import { keysWith } from './admin.ts'
import { ownPlace, place } from './place.ts'
import { eventually } from './time.ts'

export { keysWith } from './admin.ts'

/**
 * Returns the URL of the Redis server that all tests share. Only the single-server topology has such a URL. The tests
 * of test/contract run in every topology, so they use `place()` instead (place.ts).
 */
export function redisUrl(): string {
  const url = inject('redisUrl')
  if (!url) throw new Error(`the topology ${inject('topology')} has no URL`)
  return url
}

/** Makes a lock client, which is closed after the test. */
export function client(
  options: ClientOptions = {},
  redis: ConstructorParameters<typeof LockClient>[0] = place().source(options),
  Client: new (...args: ConstructorParameters<typeof LockClient>) => LockClient = LockClient,
): LockClient {
  // By default, a waiter joins the queue after 50 ms, where a slow machine may not have come to the point of a test yet.
  const locks = new Client(redis, { fairAfter: 1_000, ...options })
  onTestFinished(() => locks.close())
  return locks
}

/** Makes independent clients, which share nothing but Redis. */
export function clients<N extends number>(count: N): LockClient[] {
  return Array.from({ length: count }, () => client())
}

/** Makes what a test receives, just before the test. */
function given<T>(make: () => T | Promise<T>) {
  // biome-ignore lint/correctness/noEmptyPattern: the test runner demands a pattern
  return async ({}: object, use: (made: T) => Promise<void>): Promise<void> => use(await make())
}

/**
 * Declares a test, which receives what it names: a fresh key, clients that share nothing but Redis, servers of its own.
 * Nothing is made that the test does not name. This is one call of `extend`, because each call is two more entries in
 * the stack trace, from whose first ten the test runner learns on which line a test is.
 */
export const test = base.extend({
  key: given(() => freshKey()),
  locks: given(() => client()),
  other: given(() => client()),
  one: given(() => client()),
  two: given(() => client()),
  holder: given(() => client()),
  waiter: given(() => client()),
  stranger: given(() => client()),
  fair: given(() => client()),
  unfair: given(() => client()),
  own: given(() => ownPlace()),
})

/** Opens a plain connection to inspect the server with. It is closed after the test. */
export function plainRedis(url: string = redisUrl()): Redis {
  const redis = new Redis(url)
  onTestFinished(() => {
    redis.disconnect()
  })
  return redis
}

/**
 * Opens a connection that sends each command at once, even if the server is not ready to serve it. Errors of the
 * connection are ignored; a command that fails rejects its promise. The connection is closed after the test.
 */
export function bluntRedis(url: string): Redis {
  const redis = new Redis(url, { enableReadyCheck: false, retryStrategy: () => 20 })
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  return redis
}

/** Returns a key that no other test uses. */
export function freshKey(name = 'key'): string {
  return `${name}-${randomUUID()}`
}

/** Starts a server for this test alone, which the test may break. It is stopped after the test. */
export function ownServer(...args: string[]): Promise<RunningServer> {
  return stopped({ args })
}

/** Starts a server with this working folder. It is stopped after the test. */
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
 * Waits until the lock is free and its queue is empty; fails if that takes too long. The lock's keys for tokens and
 * heartbeats may remain, because they expire on their own.
 */
export async function nothingLeft(redis: Redis, locks: LockClient, key: string): Promise<void> {
  await eventually(async () => {
    const { locked, holds, waiters } = await locks.inspect(key)
    return !locked && holds === 0 && waiters.length === 0
  })
  await eventually(async () => (await keysWith(redis, `{${key}}:q`)).length === 0)
  for (const name of await keysWith(redis, key)) expect(await redis.pttl(name), name).not.toBe(-1)
}

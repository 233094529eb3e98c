import { Redis } from 'ioredis'
import type { LockOptions } from 'redis-semaphore'
import type { Rival, RivalClient, Setting } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

type Library = typeof import('redis-semaphore')
type Lock = InstanceType<Library['Mutex']>

/** redis-semaphore is used as in its README: one lock object for each acquisition, and one connection per process. */
const polling = {
  kind: 'rival',
  fair: false,
  package: 'redis-semaphore',
  runtime: 'node',
  missing: () => notInstalled('redis-semaphore'),
} as const
const settings =
  'polls every 10 ms (its default retryInterval), with auto-refresh. acquireTimeout is Infinity instead of 10 s.'

export const redisSemaphore: Rival = {
  ...polling,
  name: 'redis-semaphore',
  locks: ['mutex', 'semaphore'],
  note: `Mutex or Semaphore: ${settings}`,
  open: setting =>
    open(setting, ({ Mutex, Semaphore }, redis, key, options) =>
      setting.lock === 'semaphore'
        ? new Semaphore(redis, key, setting.permits ?? 1, options)
        : new Mutex(redis, key, options),
    ),
}

export const redisMultiSemaphore: Rival = {
  ...polling,
  name: 'redis-multi-semaphore',
  locks: ['semaphore'],
  note: `MultiSemaphore with one permit per call: ${settings}`,
  open: setting =>
    open(
      setting,
      ({ MultiSemaphore }, redis, key, options) => new MultiSemaphore(redis, key, setting.permits ?? 1, 1, options),
    ),
}

async function open(
  { url, lease }: Setting,
  make: (library: Library, redis: Redis, key: string, options: LockOptions) => Lock,
): Promise<RivalClient> {
  const library = await load<Library>('redis-semaphore')
  const redis = new Redis(url)
  const options = {
    acquireTimeout: Number.POSITIVE_INFINITY,
    // The default handler of a lost lock throws from a timer, and this would end the worker. This handler may ignore
    // the loss, because the measures show it as an overlap.
    onLockLost: () => {},
    ...(lease !== undefined && { lockTimeout: lease }),
  }
  return {
    contender: () => ({
      async acquire(key) {
        const lock = make(library, redis, key, options)
        await lock.acquire()
        return () => lock.release()
      },
    }),
    close: async () => void (await redis.quit()),
  }
}

import { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

/** Polls with SET NX every 10 ms, its default. A mutex object a hold and one connection a process, as its README does. */
export const redisSemaphore: Rival = {
  name: 'redis-semaphore',
  kind: 'rival',
  fair: false,
  package: 'redis-semaphore',
  note: 'Mutex with its default retryInterval of 10 ms and its auto-refresh; acquireTimeout raised from 10 s to infinity.',
  runtime: 'node',
  missing: () => notInstalled('redis-semaphore'),
  async open({ url, lease }) {
    const { Mutex } = await load<typeof import('redis-semaphore')>('redis-semaphore')
    const redis = new Redis(url)
    const options = {
      acquireTimeout: Number.POSITIVE_INFINITY,
      // By default it throws out of a timer, which would end the worker. A lost lock shows as an overlap instead.
      onLockLost: () => {},
      ...(lease !== undefined && { lockTimeout: lease }),
    }
    return {
      contender: () => ({
        async acquire(key) {
          const mutex = new Mutex(redis, key, options)
          await mutex.acquire()
          return () => mutex.release()
        },
      }),
      close: async () => void (await redis.quit()),
    }
  },
}

import { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

interface Choice {
  performance?: 'lean'
  retryDelay?: number
}

function universalWith(name: string, note: string, choice: Choice): Rival {
  return {
    name,
    kind: 'rival',
    fair: false,
    package: 'redlock-universal',
    note,
    runtime: 'node',
    missing: () => notInstalled('redlock-universal'),
    async open({ url, lease }) {
      const { createLock, IoredisAdapter } = await load<typeof import('redlock-universal')>('redlock-universal')
      type Lock = ReturnType<typeof createLock>
      const redis = new Redis(url)
      const adapter = new IoredisAdapter(redis)
      const locks = new Map<string, Lock>()
      // One object a key for the whole process, as it is meant: a new one begins with a PING to look after the server.
      const lockOf = (key: string): Lock => {
        const known = locks.get(key)
        if (known) return known
        const lock = createLock({
          adapter,
          key,
          retryAttempts: Number.MAX_SAFE_INTEGER, // it knows no "without end"
          ...(lease !== undefined && { ttl: lease }),
          ...choice,
        })
        locks.set(key, lock)
        return lock
      }
      return {
        contender: () => ({
          async acquire(key) {
            const lock = lockOf(key)
            const handle = await lock.acquire()
            return () => lock.release(handle)
          },
        }),
        close: async () => void (await redis.quit()),
      }
    },
  }
}

export const redlockUniversal = universalWith(
  'redlock-universal',
  'createLock on one server through ioredis, its defaults: polls every 100 ms; retryAttempts without end.',
  {},
)

/** Its defaults leave a free lock unused most of the time, so it is measured with redis-semaphore's delay, too. */
export const redlockUniversal10ms = universalWith(
  'redlock-universal-10ms',
  'createLock on one server through ioredis, polls every 10 ms (our setting) in its "lean" mode; retryAttempts without end.',
  { retryDelay: 10, performance: 'lean' },
)

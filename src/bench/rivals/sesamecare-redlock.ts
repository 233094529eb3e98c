import { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { notInstalled } from './installed.ts'

/** It has no default lease; this is the one of its README. */
const leaseOfReadme = 5_000

function redlockWith(name: string, note: string, timing?: { retryDelay: number; retryJitter: number }): Rival {
  return {
    name,
    kind: 'rival',
    fair: false,
    package: '@sesamecare-oss/redlock',
    note,
    runtime: 'node',
    missing: () => notInstalled('@sesamecare-oss/redlock'),
    async open({ url, lease = leaseOfReadme }) {
      const { Redlock } = await import('@sesamecare-oss/redlock')
      const redis = new Redis(url)
      // Each of its scripts selects a database, 0 unless told: the one of the URL is meant.
      const redlock = new Redlock([redis], { db: redis.options.db ?? 0, ...timing })
      return {
        contender: () => ({
          async acquire(key) {
            // Only here without end: set for all, a release whose lock has expired would retry for ever as well.
            const lock = await redlock.acquire([key], lease, { retryCount: -1 })
            return () => lock.release()
          },
        }),
        close: async () => void (await redis.quit()),
      }
    },
  }
}

export const sesamecareRedlock = redlockWith(
  'sesamecare-redlock',
  'One server, its defaults: polls every 200 ± 100 ms; retryCount -1 so that it never gives up. No auto-extension.',
)

/** Its defaults leave a free lock unused most of the time, so it is measured with redis-semaphore's delay, too. */
export const sesamecareRedlock10ms = redlockWith(
  'sesamecare-redlock-10ms',
  'One server, polls every 10 ± 5 ms (our setting, jitter in the proportion of its defaults); retryCount -1.',
  { retryDelay: 10, retryJitter: 5 },
)

import { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

// The package has declarations, but its `exports` hide them.
interface Library {
  default: new (clients: Redis[], settings?: Partial<Timing>) => Redlock
}
interface Redlock {
  acquire(
    resources: string[],
    duration: number,
    settings: { retryCount: number },
  ): Promise<{ release(): Promise<unknown> }>
}
interface Timing {
  retryDelay: number
  retryJitter: number
}

/** It has no default lease; this is the one of its README. */
const leaseOfReadme = 5_000

function redlockWith(name: string, note: string, timing?: Timing): Rival {
  return {
    name,
    kind: 'rival',
    fair: false,
    package: 'redlock',
    note,
    runtime: 'node',
    missing: () => notInstalled('redlock'),
    async open({ url, lease = leaseOfReadme }) {
      const { default: Redlock } = await load<Library>('redlock')
      const redis = new Redis(url)
      const redlock = new Redlock([redis], timing)
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

export const redlock = redlockWith(
  'redlock',
  'One server, its defaults: polls every 200 ± 100 ms; retryCount -1 so that it never gives up. No auto-extension.',
)

/** Its defaults leave a free lock unused most of the time, so it is measured with redis-semaphore's delay, too. */
export const redlock10ms = redlockWith(
  'redlock-10ms',
  'One server, polls every 10 ± 5 ms (our setting, jitter in the proportion of its defaults); retryCount -1.',
  { retryDelay: 10, retryJitter: 5 },
)

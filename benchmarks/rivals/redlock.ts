import { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

// The package has declarations, but its `exports` hide them.
interface Library {
  default: new (clients: Redis[], settings?: Partial<Timing>) => Redlock
}
export interface Redlock {
  acquire(resources: string[], duration: number, settings: { retryCount: number }): Promise<RedlockLease>
}
export interface RedlockLease {
  /** One for each time that all servers were asked. */
  readonly attempts: { readonly length: number }
  release(): Promise<unknown>
}
export interface Timing {
  retryDelay: number
  retryJitter: number
}

/** In ms. There is no default lease; this is the one in the READMEs. */
export const leaseOfReadme = 5_000

/**
 * A variant of Redlock with its settings, on one server. @sesamecare-oss/redlock is a fork and is used in the same way.
 */
export function redlockRival(
  { name, note, package: from }: Pick<Rival, 'name' | 'note'> & { readonly package: string },
  connect: (clients: Redis[]) => Promise<Redlock>,
): Rival {
  return {
    name,
    kind: 'rival',
    fair: false,
    package: from,
    note,
    runtime: 'node',
    missing: () => notInstalled(from),
    async open({ url, lease = leaseOfReadme }) {
      const redis = new Redis(url)
      const redlock = await connect([redis])
      return {
        contender: () => ({
          async acquire(key) {
            // Unlimited only here: as a general setting, a release of an expired lock would also retry for ever.
            const lock = await redlock.acquire([key], lease, { retryCount: -1 })
            return () => lock.release()
          },
        }),
        close: async () => void (await redis.quit()),
      }
    },
  }
}

export const defaults =
  'One server, its defaults: polls every 200 ± 100 ms; retryCount -1 so that it never gives up. No auto-extension.'

/** With the defaults a free lock is unused most of the time, so each is also measured with redis-semaphore's delay. */
export const quicker = {
  note: 'One server, polls every 10 ± 5 ms (our setting, jitter in the proportion of its defaults); retryCount -1.',
  timing: { retryDelay: 10, retryJitter: 5 },
}

export async function connectRedlock(clients: Redis[], timing?: Timing): Promise<Redlock> {
  const { default: Redlock } = await load<Library>('redlock')
  return new Redlock(clients, timing)
}

export const redlock = redlockRival({ name: 'redlock', note: defaults, package: 'redlock' }, clients =>
  connectRedlock(clients),
)

export const redlock10ms = redlockRival({ name: 'redlock-10ms', note: quicker.note, package: 'redlock' }, clients =>
  connectRedlock(clients, quicker.timing),
)

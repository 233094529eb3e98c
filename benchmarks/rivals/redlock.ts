import { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

// The package redlock has type declarations, but its `exports` hide them. So this file declares what it uses.
interface Library {
  default: new (clients: Redis[], settings?: Partial<Timing>) => Redlock
}
export interface Redlock {
  acquire(resources: string[], duration: number, settings: { retryCount: number }): Promise<RedlockLease>
}
export interface RedlockLease {
  /** One entry for each time that the call asked all servers. */
  readonly attempts: { readonly length: number }
  release(): Promise<unknown>
}
export interface Timing {
  retryDelay: number
  retryJitter: number
}

/** The lease in the READMEs of redlock and of its fork, in ms. Neither has a default lease. */
export const leaseOfReadme = 5_000

/**
 * Makes the adapter for redlock on one server, or for its fork @sesamecare-oss/redlock, which is used in the same way.
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
            // Unlimited retries are set only here. As a client setting, they would also apply to `release`, which would
            // retry for ever if the lock has expired.
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
  'One server with its defaults: polls every 200 ± 100 ms. retryCount is -1, so it never gives up. No auto-extension.'

/**
 * With the default delays between two attempts, a free lock stays unused most of the time. So redlock and its fork are
 * also measured with the shorter delay that redis-semaphore has by default.
 */
export const quicker = {
  note: 'One server, polls every 10 ± 5 ms (our setting, with jitter in the same proportion as its defaults). retryCount is -1.',
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

import type { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

/** Private parts of the library that `close` has to reach. */
interface Inside {
  readonly commandExecutor: { readonly subscribeRedis: Redis }
  readonly redis: Redis
  quit(): Promise<void>
}

function redissonWith(name: string, eventAdapter: 'pubsub' | 'streams', note: string): Rival {
  return {
    name,
    kind: 'rival',
    fair: false,
    package: 'node-redisson',
    note,
    runtime: 'node',
    missing: () => notInstalled('node-redisson'),
    async open({ url, lease }) {
      const { Redisson } = await load<typeof import('node-redisson')>('node-redisson')
      const redisson = new Redisson({
        redis: { options: connectionTo(url) },
        eventAdapter,
        // Unless the caller gives a lease, it renews a lock every third of this time.
        ...(lease !== undefined && { lockWatchdogTimeout: BigInt(lease) }),
      })
      return {
        contender: () => ({
          async acquire(key) {
            const lock = redisson.getLock(key)
            await lock.lock()
            return () => lock.unlock()
          },
        }),
        close: () => close(redisson as unknown as Inside, eventAdapter),
      }
    },
  }
}

/**
 * The library leaves two things running. Each wait leaves a timer of up to the rest of the lease, which unsubscribes
 * even if the wait is long over; on a closed connection that is an unhandled rejection, and ends the process. And the
 * reader of the stream blocks for ever, so `quit` would wait for ever: an event releases it, and the replaced `xread`
 * keeps it from reading again.
 */
async function close(redisson: Inside, eventAdapter: string): Promise<void> {
  const { subscribeRedis } = redisson.commandExecutor
  Object.assign(subscribeRedis, { unsubscribe: async () => 0, xread: () => new Promise(() => {}) })
  if (eventAdapter === 'streams') await redisson.redis.xadd('redisson:events', 'MAXLEN', '~', 100, '*', 'closing', '')
  await redisson.quit()
}

/** It takes the parts of a URL, not the URL. */
function connectionTo(url: string) {
  const { hostname, port, username, password, pathname, protocol } = new URL(url)
  return {
    host: hostname,
    port: Number(port || 6379),
    db: Number(pathname.slice(1) || 0),
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' && { tls: {} }),
  }
}

export const nodeRedisson = redissonWith(
  'node-redisson',
  'pubsub',
  'Its defaults: woken by pub/sub, lease of 30 s renewed by its watchdog; a lock object a hold.',
)

export const nodeRedissonStreams = redissonWith(
  'node-redisson-streams',
  'streams',
  'Woken through a stream (its other event adapter), lease of 30 s renewed by its watchdog; a lock object a hold.',
)

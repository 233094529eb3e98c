import type { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

/** Private parts of node-redisson that `close` needs. */
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
        // The lease of calls that state no lease. node-redisson renews such a lease at intervals of a third of its
        // length.
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
 * Closes what node-redisson leaves running. Each wait leaves a timer that unsubscribes later, even if the wait is over.
 * On a closed connection, unsubscribing would reject. No code handles that rejection, so it would end the process.
 * Therefore this function replaces `unsubscribe`. The reader of the event stream blocks for ever, so `quit` would not
 * return. Therefore this function adds an event, which wakes the reader, and replaces `xread`, so that the reader does
 * not read again.
 */
async function close(redisson: Inside, eventAdapter: string): Promise<void> {
  const { subscribeRedis } = redisson.commandExecutor
  Object.assign(subscribeRedis, { unsubscribe: async () => 0, xread: () => new Promise(() => {}) })
  if (eventAdapter === 'streams') await redisson.redis.xadd('redisson:events', 'MAXLEN', '~', 100, '*', 'closing', '')
  await redisson.quit()
}

/** Returns the parts of a URL, because node-redisson does not accept a URL. */
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
  'With its defaults: woken by pub/sub, lease of 30 s renewed by its watchdog. One lock object per hold.',
)

export const nodeRedissonStreams = redissonWith(
  'node-redisson-streams',
  'streams',
  'Woken through a stream (its other event adapter), lease of 30 s renewed by its watchdog. One lock object per hold.',
)

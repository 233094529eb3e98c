import type { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

/** Private fields of a node-redisson client. `close` needs them. */
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
        // If a call sets no lease, node-redisson uses this one, and renews it whenever a third of it has passed.
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
 * Closes a client of node-redisson, and what its own `quit` leaves running:
 *
 *  a timer      It starts whenever a caller waits, and unsubscribes later. After `quit`, this would reject, because the
 *               connection is closed. Nobody handles the rejection, so the process would end. So `unsubscribe` is
 *               replaced.
 *  an XREAD     The event adapter 'streams' waits in XREAD without a time limit, and `quit` would wait as long. So an
 *               event is added, which ends the XREAD, and `xread` is replaced, so that no further XREAD follows.
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

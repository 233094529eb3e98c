import { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

interface Choice {
  performance?: 'lean'
  retryDelay?: number
}

type Library = typeof import('redlock-universal')
type Lock = ReturnType<Library['createLock']>
type Adapter = InstanceType<Library['IoredisAdapter']>

/** redlock-universal has no setting for unlimited attempts. */
const retryAttempts = Number.MAX_SAFE_INTEGER

function universalWith(
  about: Pick<Rival, 'name' | 'note' | 'locks'>,
  create: (library: Library, adapters: readonly Adapter[], key: string, ttl: { ttl?: number }) => Lock,
): Rival {
  return {
    ...about,
    kind: 'rival',
    fair: false,
    package: 'redlock-universal',
    runtime: 'node',
    missing: () => notInstalled('redlock-universal'),
    async open({ url, servers = [url], lease }) {
      const library = await load<Library>('redlock-universal')
      const clients = servers.map(server => new Redis(server))
      const adapters = clients.map(client => new library.IoredisAdapter(client))
      const locks = new Map<string, Lock>()
      let attempts = 0
      // The whole process uses one lock object per key, as redlock-universal intends. A new object for each acquisition
      // would cost a PING each time.
      const lockOf = (key: string): Lock => {
        const known = locks.get(key)
        if (known) return known
        const lock = create(library, adapters, key, lease === undefined ? {} : { ttl: lease })
        locks.set(key, lock)
        return lock
      }
      return {
        contender: () => ({
          async acquire(key) {
            const lock = lockOf(key)
            const handle = await lock.acquire()
            attempts += handle.metadata?.attempts ?? 1
            return () => lock.release(handle)
          },
        }),
        tally: () => ({ attempts, secondRounds: 0 }),
        close: async () => void (await Promise.all(clients.map(client => client.quit()))),
      }
    },
  }
}

function onOneServer(name: string, note: string, choice: Choice): Rival {
  return universalWith({ name, note }, ({ createLock }, [adapter], key, ttl) =>
    createLock({ adapter: adapter!, key, retryAttempts, ...ttl, ...choice }),
  )
}

function overServers(name: string, note: string, choice: Pick<Choice, 'retryDelay'>): Rival {
  return universalWith({ name, note, locks: ['quorum'] }, ({ createRedlock }, adapters, key, ttl) =>
    createRedlock({ adapters, key, retryAttempts, ...ttl, ...choice }),
  )
}

export const redlockUniversal = onOneServer(
  'redlock-universal',
  'createLock on one server through ioredis with its defaults: polls every 100 ms. retryAttempts is unlimited.',
  {},
)

/**
 * With the default delay between two attempts, a free lock stays unused most of the time. So redlock-universal is also
 * measured with the shorter delay that redis-semaphore has by default.
 */
export const redlockUniversal10ms = onOneServer(
  'redlock-universal-10ms',
  'createLock on one server through ioredis in its "lean" mode, polls every 10 ms (our setting). retryAttempts is unlimited.',
  { retryDelay: 10, performance: 'lean' },
)

export const redlockUniversalQuorum = overServers(
  'redlock-universal-quorum',
  'createRedlock through ioredis with its defaults: polls every 200 ms and awaits all servers, each for up to 5 s. retryAttempts is unlimited.',
  {},
)

export const redlockUniversalQuorum10ms = overServers(
  'redlock-universal-quorum-10ms',
  'createRedlock through ioredis, polls every 10 ms (our setting) and awaits all servers, each for up to 5 s. retryAttempts is unlimited.',
  { retryDelay: 10 },
)

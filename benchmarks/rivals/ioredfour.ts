import type { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

// The package ioredfour has no type declarations.
interface Library {
  default: new (options: { redis: string; namespace: string }) => Ioredfour
}
interface Ioredfour {
  waitAcquireLock(id: string, ttl: number, wait: number): Promise<{ success: boolean }>
  releaseLock(lock: { success: boolean }): Promise<unknown>
  readonly _redisConnection: Redis
  readonly _redisSubscriber: Redis
}

/** The lease in the README of ioredfour, in ms. ioredfour has no default lease. */
const leaseOfReadme = 60_000
const withoutEnd = 0

/** ioredfour publishes each release, and then every waiter tries again. */
export const ioredfour: Rival = {
  name: 'ioredfour',
  kind: 'rival',
  fair: false,
  package: 'ioredfour',
  note: 'waitAcquireLock without a time limit, otherwise its defaults: woken by pub/sub, and tries again when the lease should have ended.',
  runtime: 'node',
  missing: () => notInstalled('ioredfour'),
  async open({ url, namespace, lease = leaseOfReadme }) {
    const { default: Lock } = await load<Library>('ioredfour')
    const locks = new Lock({ redis: url, namespace: `${namespace}:ioredfour` })
    return {
      contender: () => ({
        async acquire(key) {
          const lock = await locks.waitAcquireLock(key, lease, withoutEnd)
          return () => locks.releaseLock(lock)
        },
      }),
      // ioredfour has no method to close its connections.
      async close() {
        await Promise.all([locks._redisConnection.quit(), locks._redisSubscriber.quit()])
      },
    }
  },
}

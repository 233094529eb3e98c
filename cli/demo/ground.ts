/** Where the sale takes place: on a Redis, with a process for each worker, or in the memory of one process. */
import type { Redis } from 'ioredis'
import { LockClient } from '../../src/index.ts'
import { hire, type Listener, type Worker } from './crew.ts'
import { booksIn, openShop, type Shop } from './shop.ts'

export interface Ground {
  readonly shop: Shop
  /** Makes the coordinator's client, which looks at the queue. */
  client(): LockClient
  /** Starts a worker. */
  hire(place: number, locked: boolean, listener: Listener): Worker
  /** What is said of a worker that is killed or frozen, and what a worker is. */
  readonly words: { readonly killed: string; readonly froze: string; readonly worker: string }
  /** Removes what the run has written. */
  wipe(): Promise<void>
  /** Whether the connection to Redis is gone. */
  lost(): boolean
  stop(): Promise<void>
}

/** `prefix`: the beginning of every key of this run, which no other run has. */
export function onRedis(redis: Redis, url: string, prefix: string, stop: () => Promise<void>): Ground {
  return {
    shop: openShop(booksIn(redis), prefix),
    client: () => new LockClient(redis, { prefix: `${prefix}:lock`, label: 'demo', outageTimeout: 5_000 }),
    hire(place, locked, listener) {
      const worker = hire(place, listener)
      worker.send({ kind: 'open', url, prefix, label: worker.label, locked })
      return worker
    },
    words: { killed: 'SIGKILL ended', froze: 'SIGSTOP froze', worker: 'process' },
    async wipe() {
      for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1_000 })) {
        if (keys.length > 0) await redis.unlink(keys)
      }
    },
    lost: () => redis.status !== 'ready',
    async stop() {
      redis.disconnect()
      await stop()
    },
  }
}

import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

/** simple-redis-mutex publishes each release, and then every waiter tries again. */
export const simpleRedisMutex: Rival = {
  name: 'simple-redis-mutex',
  kind: 'rival',
  fair: false,
  package: 'simple-redis-mutex',
  note: 'With its defaults: woken by pub/sub, and also polls every 10 s. One node-redis client per process, as it demands.',
  runtime: 'node',
  missing: () => notInstalled('simple-redis-mutex', 'redis'),
  async open({ url, namespace, process, lease }) {
    const { lock } = await load<typeof import('simple-redis-mutex')>('simple-redis-mutex')
    const { createClient } = await load<typeof import('redis')>('redis')
    const redis = createClient({ url })
    await redis.connect()
    // The first lock call of simple-redis-mutex connects the subscriber that receives the messages of releases. Later
    // calls do not wait until it is connected. Without this extra first call, the first waiters of the trial would miss
    // the message of the first release. They would wait for 10 s, until they poll.
    const release = await lock(redis, `${namespace}:first-lock:${process}`)
    await release()
    return {
      contender: () => ({
        acquire: key => lock(redis, key, lease === undefined ? {} : { timeout: lease }),
      }),
      close: () => redis.close(),
    }
  },
}

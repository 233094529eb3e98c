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
    // The first lock call of simple-redis-mutex connects its subscriber. Later calls do not wait until the subscriber
    // is connected. Without this extra first call, the trial would miss its first release and begin with a pause of 10
    // s.
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

import type { Rival } from '../contract.ts'
import { load, notInstalled } from './installed.ts'

/** Each release is published, and every waiter tries again. */
export const simpleRedisMutex: Rival = {
  name: 'simple-redis-mutex',
  kind: 'rival',
  fair: false,
  package: 'simple-redis-mutex',
  note: 'Its defaults: woken by pub/sub, polls every 10 s besides; one node-redis client a process, as it demands.',
  runtime: 'node',
  missing: () => notInstalled('simple-redis-mutex', 'redis'),
  async open({ url, namespace, process, lease }) {
    const { lock } = await load<typeof import('simple-redis-mutex')>('simple-redis-mutex')
    const { createClient } = await load<typeof import('redis')>('redis')
    const redis = createClient({ url })
    await redis.connect()
    // The first lock connects the subscriber, and later ones do not wait until it is subscribed. Without this, the
    // first release would be missed and the trial would begin with a pause of 10 s.
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

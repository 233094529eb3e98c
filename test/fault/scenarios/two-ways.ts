/** A lock client whose two connections, for commands and for messages, can be broken each by itself. */
import { Redis } from 'ioredis'
import type { ClientOptions, LockClient } from '../../../src/index.ts'
import { type FaultProxy, faultProxy } from '../../kit/proxies.ts'
import { client, freshKey, redisUrl } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'

export interface TwoWays {
  locks: LockClient
  commands: FaultProxy
  messages: FaultProxy
}

export async function clientOnTwoWays(options: ClientOptions = {}, url = redisUrl()): Promise<TwoWays> {
  const proxies = [await faultProxy(url), await faultProxy(url)]
  const free = [...proxies]
  const redis = new Redis({ lazyConnect: true })
  const duplicate = (override: object) => {
    const { hostname: host, port } = new URL((free.shift() as FaultProxy).url)
    return new Redis({ ...override, host, port: Number(port) })
  }
  redis.duplicate = duplicate as Redis['duplicate']

  let messages: FaultProxy | undefined
  for (const proxy of proxies) {
    proxy.filter((direction, data) => {
      if (direction === 'up' && /\$9\r\nsubscribe\r\n/i.test(String(data))) messages = proxy
      return data
    })
  }
  const locks = client(options, redis)
  await everyScriptKnown(locks)
  await eventually(() => messages && proxies.every(proxy => proxy.connections === 1))
  for (const proxy of proxies) proxy.heal()
  return { locks, messages: messages as FaultProxy, commands: proxies.find(proxy => proxy !== messages) as FaultProxy }
}

/** Breaks the connection, as a network does that comes back at once. What was swallowed on it stays lost. */
export function reconnect(proxy: FaultProxy): void {
  proxy.cut()
  proxy.heal()
}

/** Half-open: nothing arrives any more, nobody is told, until the client itself gives the connection up. */
export async function fallSilent(proxy: FaultProxy, limit: number): Promise<void> {
  proxy.swallow('down')
  proxy.refuse()
  await eventually(() => proxy.connections === 0, limit)
  proxy.heal()
  proxy.accept()
}

/** Makes the server load the scripts, so that a lost reply is never only "I do not know this script". */
async function everyScriptKnown(locks: LockClient): Promise<void> {
  const key = freshKey()
  const lease = await locks.lock(key)
  // Too short for an answer, as often as not.
  await locks.tryLock(key, { fair: true, timeout: 1 }).catch(() => {})
  await lease.renew()
  await lease.release()
  await locks.inspect(key)
}

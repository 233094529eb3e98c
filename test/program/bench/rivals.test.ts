/** The adapters of the Node rivals. What they cost is the benchmark's business; here each has to be a lock at all. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Release, Rival, RivalClient, Setting } from '../../../benchmarks/contract.ts'
import { ioredfour } from '../../../benchmarks/rivals/ioredfour.ts'
import { liveMutex, liveMutexSocket } from '../../../benchmarks/rivals/live-mutex.ts'
import { nodeRedisson, nodeRedissonStreams } from '../../../benchmarks/rivals/node-redisson.ts'
import { redisSemaphore } from '../../../benchmarks/rivals/redis-semaphore.ts'
import { redlock, redlock10ms } from '../../../benchmarks/rivals/redlock.ts'
import { redlockUniversal, redlockUniversal10ms } from '../../../benchmarks/rivals/redlock-universal.ts'
import { sesamecareRedlock, sesamecareRedlock10ms } from '../../../benchmarks/rivals/sesamecare-redlock.ts'
import { simpleRedisMutex } from '../../../benchmarks/rivals/simple-redis-mutex.ts'
import { freshKey, redisUrl } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'

const withRedis = [
  redisSemaphore,
  redlock,
  redlock10ms,
  sesamecareRedlock,
  sesamecareRedlock10ms,
  redlockUniversal,
  redlockUniversal10ms,
  simpleRedisMutex,
  ioredfour,
  nodeRedisson,
  nodeRedissonStreams,
]
/** Not among the development dependencies: measured and tested where somebody has installed it. */
const liveMutexIsThere = (await liveMutex.missing()) === undefined
const installed = [...withRedis, ...(liveMutexIsThere ? [liveMutex, liveMutexSocket] : [])]

const clients: RivalClient[] = []
afterEach(async () => {
  await Promise.all(clients.splice(0).map(client => client.close()))
})

/** Two clients as two processes would have them. */
async function twoClients(rival: Rival): Promise<[RivalClient, RivalClient]> {
  const namespace = freshKey('rival')
  const open = async (process: number): Promise<RivalClient> => {
    const setting: Setting = {
      rival: rival.name,
      url: redisUrl(),
      namespace,
      process,
      processes: 2,
      waiters: 2,
      lease: 5_000,
    }
    const client = await rival.open!(setting)
    clients.push(client)
    return client
  }
  return Promise.all([open(0), open(1)])
}

describe.each(installed.map(rival => ({ name: rival.name, rival })))('$name', ({ rival }) => {
  test('a waiter of the same process and one of another get the lock only by a release', async () => {
    const [here, there] = await twoClients(rival)
    const key = freshKey('rival')
    const holder = await here.contender(0)
    const waiters = [await here.contender(1), await there.contender(0)]

    const release = await holder.acquire(key)
    const granted: Release[] = []
    const requests = waiters.map(async waiter => void granted.push(await waiter.acquire(key)))
    await sleep(150)
    expect(granted).toHaveLength(0)

    await release()
    await Promise.race(requests)
    await sleep(150)
    expect(granted).toHaveLength(1)

    await granted[0]!()
    await Promise.all(requests)
    expect(granted).toHaveLength(2)
    await granted[1]!()
  })
})

test.each(withRedis.map(rival => ({ name: rival.name, rival })))(
  '$name is installed for development',
  async ({ rival }) => {
    expect(await rival.missing()).toBeUndefined()
  },
)

/** Tests that the adapter of each Node rival works as a lock. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Release, Rival, RivalClient, Setting, Sharing } from '../../../benchmarks/contract.ts'
import { batonFair, batonUnfair } from '../../../benchmarks/rivals/baton.ts'
import { etcd, etcdElection } from '../../../benchmarks/rivals/etcd.ts'
import { floorBlpop } from '../../../benchmarks/rivals/floors.ts'
import { ioredfour } from '../../../benchmarks/rivals/ioredfour.ts'
import { liveMutex, liveMutexSocket } from '../../../benchmarks/rivals/live-mutex.ts'
import { nodeRedisson, nodeRedissonStreams } from '../../../benchmarks/rivals/node-redisson.ts'
import { postgres } from '../../../benchmarks/rivals/postgres.ts'
import { redisMultiSemaphore, redisSemaphore } from '../../../benchmarks/rivals/redis-semaphore.ts'
import { redlock, redlock10ms } from '../../../benchmarks/rivals/redlock.ts'
import {
  redlockQuorum,
  redlockQuorum10ms,
  sesamecareRedlockQuorum,
  sesamecareRedlockQuorum10ms,
} from '../../../benchmarks/rivals/redlock-quorum.ts'
import {
  redlockUniversal,
  redlockUniversal10ms,
  redlockUniversalQuorum,
  redlockUniversalQuorum10ms,
} from '../../../benchmarks/rivals/redlock-universal.ts'
import { sesamecareRedlock, sesamecareRedlock10ms } from '../../../benchmarks/rivals/sesamecare-redlock.ts'
import { simpleRedisMutex } from '../../../benchmarks/rivals/simple-redis-mutex.ts'
import { zookeeper } from '../../../benchmarks/rivals/zookeeper.ts'
import { freshKey, ownServer, redisUrl } from '../../kit/redis.ts'
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
const overServers = [
  redlockQuorum,
  redlockQuorum10ms,
  sesamecareRedlockQuorum,
  sesamecareRedlockQuorum10ms,
  redlockUniversalQuorum,
  redlockUniversalQuorum10ms,
]
/**
 * live-mutex is not a development dependency, and the others need servers that no test starts. They are tested only if
 * the user has installed live-mutex, and has named the servers (benchmarks/rivals/elsewhere.ts).
 */
const further = [liveMutex, liveMutexSocket, postgres, etcd, etcdElection, zookeeper]
const reasons = await Promise.all(further.map(rival => rival.missing()))
const installed = [...withRedis, ...further.filter((_, i) => reasons[i] === undefined)]

const clients: RivalClient[] = []
afterEach(async () => {
  await Promise.all(clients.splice(0).map(client => client.close()))
})

/**
 * A time limit that is long enough for a quorum in which no caller gets a majority at first. Then the callers wait
 * until a lease ends.
 */
const slow = { timeout: 30_000 }

async function threeServers(): Promise<string[]> {
  const servers = await Promise.all([ownServer(), ownServer(), ownServer()])
  return servers.map(({ url }) => url)
}

/** Opens two clients, as if they were in two processes. */
async function twoClients(
  rival: Rival,
  sharing: Sharing = {},
  servers?: readonly string[],
): Promise<[RivalClient, RivalClient]> {
  const namespace = freshKey('rival')
  const open = async (process: number): Promise<RivalClient> => {
    const setting: Setting = {
      rival: rival.name,
      url: redisUrl(),
      ...(servers && { servers }),
      namespace,
      process,
      processes: 2,
      waiters: 2,
      lease: 5_000,
      ...sharing,
    }
    const client = await rival.open!(setting)
    clients.push(client)
    return client
  }
  return Promise.all([open(0), open(1)])
}

const everyone = [...installed, ...overServers].map(rival => ({ name: rival.name, rival }))
describe.each(everyone)('$name', ({ rival }) => {
  test('a waiter of the same process and one of another get the lock only by a release', slow, async () => {
    const servers = overServers.includes(rival) ? await threeServers() : undefined
    const [here, there] = await twoClients(rival, {}, servers)
    const key = freshKey('rival')
    const holder = await here.contender(0, false)
    const waiters = [await here.contender(1, false), await there.contender(0, false)]

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

test.each([batonFair, batonUnfair])('a read-write lock of $name has several readers, or one writer', async rival => {
  const [here, there] = await twoClients(rival, { lock: 'readWrite' })
  const key = freshKey('rival')
  const contenders = [here.contender(0, true), there.contender(0, true), there.contender(1, false)]
  const [one, two, writer] = await Promise.all(contenders)
  const releases = await Promise.all([one!.acquire(key), two!.acquire(key)])
  let written: Release | undefined
  const writing = writer!.acquire(key).then(release => {
    written = release
  })
  await releases[0]!()
  await sleep(150)
  expect(written).toBeUndefined()
  await releases[1]!()
  await writing
  await written!()
})

const semaphores = [batonFair, batonUnfair, redisSemaphore, redisMultiSemaphore, floorBlpop]
test.each(semaphores.map(rival => ({ name: rival.name, rival })))(
  'a semaphore of $name has as many holders as permits, over both processes',
  async ({ rival }) => {
    const [here, there] = await twoClients(rival, { lock: 'semaphore', permits: 2 })
    const key = freshKey('rival')
    const [first, second, third] = [here.contender(0, false), there.contender(0, false), here.contender(1, false)]
    const releases = await Promise.all([await first, await second].map(contender => contender.acquire(key)))
    let granted: Release | undefined
    const request = (await third).acquire(key).then(release => {
      granted = release
    })
    await sleep(150)
    expect(granted).toBeUndefined()

    await releases[1]!()
    await request
    await Promise.all([releases[0]!(), granted!()])
  },
)

test.each(withRedis.map(rival => ({ name: rival.name, rival })))(
  '$name is installed for development',
  async ({ rival }) => {
    expect(await rival.missing()).toBeUndefined()
  },
)

/** Provides one set of servers under sentinels for all tests of a file. Each test restores the servers. */
import { randomUUID } from 'node:crypto'
import type { RedisOptions } from 'ioredis'
import { afterAll, afterEach, beforeAll, expect, onTestFinished } from 'vitest'
import type { RunningServer } from '../../../local-redis/index.ts'
import type { ClientOptions, Lease, LockClient } from '../../../src/index.ts'
import { kinds } from '../../kit/kinds.ts'
import { within } from '../../kit/outcomes.ts'
import { freshKey } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { RedisSentinel } from '../../kit/topologies/redis-sentinel.ts'

/**
 * With these options, renewals and heartbeats are so rare that only the sentinels can make the clients of a test leave
 * a master.
 */
export const patient = { lease: 60_000, waiterTtl: 30_000 }

let servers: RedisSentinel

beforeAll(async () => {
  servers = await RedisSentinel.start()
})

afterAll(() => servers?.stop())

afterEach(() => servers.mend())

export interface Scene {
  readonly servers: RedisSentinel
  readonly master: RunningServer
  /** Makes a lock client that knows these sentinels, or by default all sentinels. */
  make(options?: ClientOptions, sentinels?: readonly RunningServer[]): LockClient
  /** Returns how many connections the clients of this test have to the server. */
  connections(server: RunningServer): Promise<number>
  /**
   * Resolves when each client is subscribed on this server, and has exactly two connections to it: one for commands and
   * one for messages.
   */
  allAt(server: RunningServer): Promise<void>
}

export async function scene({ client } = kinds[0]!): Promise<Scene> {
  const connectionName = `of-${randomUUID()}`
  const made: LockClient[] = []
  const connections = async (server: RunningServer) => {
    const list = String(await servers.direct(server).client('LIST'))
    return list.split('\n').filter(line => line.includes(`name=${connectionName}`)).length
  }
  return {
    servers,
    master: await servers.master(),
    make(options = patient, sentinels = servers.sentinels) {
      const known = sentinels.map(({ port }) => ({ host: '127.0.0.1', port }))
      const locks = client(options, { ...servers.options, sentinels: known, connectionName })
      made.push(locks)
      return locks
    },
    connections,
    async allAt(server) {
      await eventually(async () => (await connections(server)) === 2 * made.length, 8_000)
      const heard = () => servers.direct(server).pubsub('CHANNELS', '*:inbox:*')
      await eventually(async () => (await heard()).length === made.length)
    },
  }
}

/**
 * Makes a sentinel report a replica as the master, under a new master name, until `putRight` is called. The returned
 * `options` are for a client that uses this name.
 */
export async function mistaken({ servers, master }: Scene) {
  const [sentinel] = servers.sentinels
  const direct = servers.direct(sentinel!)
  const replica = servers.data.find(server => server !== master)!
  const name = `mistaken-${freshKey()}`
  // The quorum is larger than the number of sentinels, so the sentinel starts no failover.
  const monitor = (port: number) => direct.call('SENTINEL', 'MONITOR', name, '127.0.0.1', port, 9)
  const forget = () => direct.call('SENTINEL', 'REMOVE', name)
  await monitor(replica.port)
  onTestFinished(async () => {
    await forget()
  })
  return {
    replica,
    options: { sentinels: [{ host: '127.0.0.1', port: sentinel!.port }], name } satisfies RedisOptions,
    /**
     * Makes the sentinel report the true master. Sends both commands in one pipeline, so that no client can ask the
     * sentinel between them. The sentinel would answer such a client that there is no master of this name, and the
     * client would not ask again.
     */
    async putRight() {
      const named = direct.pipeline().call('SENTINEL', 'REMOVE', name)
      await named.call('SENTINEL', 'MONITOR', name, '127.0.0.1', String(master.port), '9').exec()
    },
  }
}

/** Stops a server as a hanging machine would: its sockets stay open. Returns a function that continues it. */
export function freeze({ pid }: RunningServer): () => void {
  process.kill(pid as number, 'SIGSTOP')
  return () => process.kill(pid as number, 'SIGCONT')
}

/** Releases each lease as it is granted. Returns the order of the grants, with their tokens. */
export async function serve(
  waits: readonly Promise<Lease>[],
  limit: number,
): Promise<{ place: number; token: number }[]> {
  const served: { place: number; token: number }[] = []
  const all = waits.map(async (wait, place) => {
    const lease = await wait
    served.push({ place, token: lease.fencingToken })
    expect(await lease.release()).toBe(true)
  })
  await within(limit, Promise.all(all))
  return served
}

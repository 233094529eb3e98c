/**
 * redlock and its fork @sesamecare-oss/redlock over several servers.
 *
 * A call that retries keeps the grants of its earlier attempts. A server that has granted to a call refuses the next
 * attempts of the same call, because the server does not check whose lock it is. So after a split vote, no caller gets
 * a majority until the grants expire. A call releases its grants sooner only if it fails. A call without retries fails
 * after one attempt, and a call with unlimited retries does not fail. So there are two ways to wait without a time
 * limit:
 *
 *     redlock-quorum         one call with retryCount -1, as on one server
 *     redlock-quorum-10ms    calls of one attempt each, repeated by the caller
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Rival } from '../contract.ts'
import { notInstalled } from './installed.ts'
import { connectRedlock, leaseOfReadme, type Redlock, type RedlockLease } from './redlock.ts'
import { connectSesamecare } from './sesamecare-redlock.ts'

/** Resolves when a majority has granted. `asked` is called with the number of attempts that were made. */
type Waiting = (
  redlock: Redlock,
  key: string,
  lease: number,
  asked: (attempts: number) => void,
) => Promise<RedlockLease>

const byTheLibrary: Waiting = async (redlock, key, lease, asked) => {
  const held = await redlock.acquire([key], lease, { retryCount: -1 })
  asked(held.attempts.length)
  return held
}

const byTheCaller: Waiting = async (redlock, key, lease, asked) => {
  for (;;) {
    asked(1)
    try {
      return await redlock.acquire([key], lease, { retryCount: 0 })
    } catch (error) {
      if (!(error instanceof Error && error.name === 'ExecutionError')) throw error
    }
    await sleep(5 + 10 * Math.random())
  }
}

function overServers(
  { name, note, package: from }: Pick<Rival, 'name' | 'note'> & { readonly package: string },
  connect: (clients: Redis[]) => Promise<Redlock>,
  wait: Waiting,
): Rival {
  return {
    name,
    kind: 'rival',
    fair: false,
    locks: ['quorum'],
    package: from,
    note,
    runtime: 'node',
    missing: () => notInstalled(from),
    async open({ url, servers = [url], lease = leaseOfReadme }) {
      const clients = servers.map(server => new Redis(server))
      const redlock = await connect(clients)
      let attempts = 0
      const asked = (times: number) => {
        attempts += times
      }
      return {
        contender: () => ({
          async acquire(key) {
            const held = await wait(redlock, key, lease, asked)
            return () => held.release()
          },
        }),
        tally: () => ({ attempts, secondRounds: 0 }),
        close: async () => void (await Promise.all(clients.map(client => client.quit()))),
      }
    },
  }
}

const library =
  'Over all servers with its defaults: polls every 200 ± 100 ms. retryCount is -1; a call then keeps a minority that it got until the leases expire.'
const caller =
  'Over all servers, one attempt per call (retryCount 0). A call that got only a minority releases it. Called again after 10 ± 5 ms.'

export const redlockQuorum = overServers(
  { name: 'redlock-quorum', note: library, package: 'redlock' },
  connectRedlock,
  byTheLibrary,
)

export const redlockQuorum10ms = overServers(
  { name: 'redlock-quorum-10ms', note: caller, package: 'redlock' },
  connectRedlock,
  byTheCaller,
)

export const sesamecareRedlockQuorum = overServers(
  { name: 'sesamecare-redlock-quorum', note: library, package: '@sesamecare-oss/redlock' },
  connectSesamecare,
  byTheLibrary,
)

export const sesamecareRedlockQuorum10ms = overServers(
  { name: 'sesamecare-redlock-quorum-10ms', note: caller, package: '@sesamecare-oss/redlock' },
  connectSesamecare,
  byTheCaller,
)

/**
 * Tests servers of a quorum that come back without their data. Usually such a server reports that it may forget data,
 * so its votes do not count until all earlier leases have ended. But a server that has lost its disk may still report
 * that it persists everything. Clients believe this report. Then there are two holders, and the history checker must
 * find them.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { check } from '../../history/check.ts'
import { Memory, RecordedClient } from '../../history/recorded.ts'
import { clientOf } from '../../history/soak/client-of.ts'
import { Server } from '../../history/soak/server.ts'
import { FaultProxy } from '../../kit/fault-proxy.ts'
import { forgetful, quorumScene } from '../../kit/quorum-scene.ts'
import { freshKey } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { sleep } from '../../kit/time.ts'

const lease = 3_000
const outageTimeout = 5 * lease
const options = { lease, waiterTtl: 1_500, outageTimeout }

async function threeServers(): Promise<Server[]> {
  const folder = await emptyFolder()
  return Promise.all(
    [0, 1, 2].map(async i => {
      const server = await Server.open(i, folder)
      onTestFinished(() => server.close())
      return server
    }),
  )
}

/**
 * Makes two clients that record a history. The first client connects through proxies, and `away` closes the proxy of one
 * server. The second client receives the answers of server 0 later than those of the others.
 */
async function twoClients(servers: readonly Server[], memory: Memory) {
  const proxies = await Promise.all(servers.map(({ url }) => FaultProxy.open(url)))
  const slow = await FaultProxy.open(servers[0]!.url)
  slow.delay(10)
  const [holder, other] = [proxies, [slow, ...servers.slice(1)]].map(list =>
    clientOf(
      list.map(({ url }) => url),
      options,
    ),
  ) as [ReturnType<typeof clientOf>, ReturnType<typeof clientOf>]
  onTestFinished(async () => {
    await Promise.all([holder.close(), other.close()])
    await Promise.all([...proxies, slow].map(proxy => proxy.close()))
  })
  const away = (i: number) => {
    proxies[i]!.refuse()
    proxies[i]!.cut()
  }
  return {
    holder: new RecordedClient('holder', holder, memory),
    other: new RecordedClient('other', other, memory),
    away,
  }
}

const scenes = {
  'one of the two servers that know of the hold': { unreached: [2], emptied: [1] },
  'most of the servers': { unreached: [], emptied: [1, 2] },
}

describe.each(Object.entries(scenes))('%s', (_, { unreached, emptied }) => {
  /**
   * Lets `holder` take the lock, restarts servers without their data, and lets `other` request the lock. Returns
   * whether both clients held the lock at once, and what the checker found.
   */
  async function play(fair: boolean, says: 'the truth' | 'that it persists') {
    const memory = new Memory()
    memory.record('run', { seed: 0, servers: 3, waiterTtl: 1_500, longestLease: lease, outageTimeout })
    const servers = await threeServers()
    const { holder, other, away } = await twoClients(servers, memory)
    const key = freshKey()
    for (const i of unreached) away(i)
    const held = await holder.lock(key, { lease })
    // Cut the holder off, so that it cannot restore the lost data. Until its deadline, the holder still relies on its
    // hold.
    for (const { number } of servers) away(number)
    for (const i of emptied) {
      await servers[i]!.kill()
      await servers[i]!.comeBackEmpty(says)
    }
    const next = await other.lock(key, { fair })
    const both = held.held
    await new Promise(resolve => {
      if (held.signal.aborted) resolve(undefined)
      else held.signal.addEventListener('abort', resolve)
    })
    expect(next.fencingToken).toBeGreaterThan(held.fencingToken)
    await holder.release(held)
    await other.release(next)
    return { both, violations: check(memory.events).violations.map(({ invariant }) => invariant) }
  }

  // This test fails if `return this.#account && this.wait === 0` becomes `return this.#account && true` in
  // src/compose/quorum/eligibility.ts: every server's vote counts, whatever the server reports (I1).
  test.each([true, false])('I1 I8: no other client holds before the holder is notified (fair: %s)', async fair => {
    expect(await play(fair, 'the truth')).toEqual({ both: false, violations: [] })
  })

  // This test fails if `since: persists ? Number.NEGATIVE_INFINITY : ` becomes `since: ` in
  // src/compose/quorum/eligibility.ts: clients do not believe a server that reports that it persists everything.
  test.each([true, false])(
    'a server that wrongly reports that it persists leads to two holders, which the checker finds (fair: %s)',
    async fair => {
      expect(await play(fair, 'that it persists')).toEqual({ both: true, violations: ['I1'] })
    },
  )
})

/**
 * Redis rounds both the time of its start and the present time down to whole seconds. Its uptime is the difference. So
 * if a server starts at the end of a second, it reports an uptime of 1 s as soon as the next second begins.
 */
// This test fails if `(uptime - 1)` becomes `uptime` in src/compose/quorum/eligibility.ts: the votes count before the
// longest lease is over.
test('I1: a server’s votes count only after the longest lease, although the server reports up to 1 s too much', async () => {
  const longest = 2_000
  const scene = await quorumScene({ args: forgetful })
  const second = () => Math.floor(Date.now() / 1000)
  const into = async (ms: number) => sleep((1_000 + ms - (Date.now() % 1000)) % 1000)
  let started: number
  let begun: number
  do {
    await into(300)
    started = second()
    begun = performance.now()
    await Promise.all(Array.from({ length: scene.size }, (_, i) => scene.restartEmpty(i)))
  } while (second() !== started)
  // Wait until the servers have noticed the beginning of the next second. They read the time of day only every 100 ms.
  await into(200)
  const lease = await scene.client({ lease: longest }).lock(freshKey())
  expect(performance.now() - begun).toBeGreaterThanOrEqual(longest)
  await lease.release()
})

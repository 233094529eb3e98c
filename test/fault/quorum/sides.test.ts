/** Tests a split network: each of two clients reaches only some of the servers, and the split changes over time. */
import { expect, test } from 'vitest'
import { type Lease, LockConnectionError, LockLostError, LockTimeoutError } from '../../../src/index.ts'
import { checkPassing } from '../../history/check.ts'
import { Memory, RecordedClient } from '../../history/recorded.ts'
import { aborted, within } from '../../kit/outcomes.ts'
import type { Direction, FrameProxy } from '../../kit/proxies.ts'
import { type QuorumScene, quorumScene } from '../../kit/quorum-scene.ts'
import { Random } from '../../kit/random.ts'
import { freshKey } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'
import { seeded } from './trial.ts'

const sizes = [3, 5]
const waiterTtl = 1_500

interface Times {
  readonly lease: number
  readonly outageTimeout: number
}

/** A client and its network links to the servers. The test decides which links work. */
class Side {
  readonly recorded: RecordedClient
  readonly #links: readonly FrameProxy[]
  #healing: (() => void)[] = []

  private constructor(recorded: RecordedClient, links: readonly FrameProxy[]) {
    this.recorded = recorded
    this.#links = links
  }

  static async of(scene: QuorumScene, label: string, memory: Memory, times: Times): Promise<Side> {
    const { locks, links } = await scene.linked({ ...times, waiterTtl, label })
    return new Side(new RecordedClient(label, locks, memory), links)
  }

  /**
   * Lets the client reach only these servers from now on. The links to the other servers hold back all data until the
   * client reaches those servers again.
   */
  reach(servers: readonly number[], directions: readonly Direction[] = ['up', 'down']): void {
    for (const heal of this.#healing.splice(0)) heal()
    for (const [i, link] of this.#links.entries()) {
      if (servers.includes(i)) continue
      for (const direction of directions) {
        const rule = link.rule({ direction }, 'hold')
        this.#healing.push(() => rule.lift())
      }
    }
  }

  reachAll(): void {
    this.reach(this.#links.map((_, i) => i))
  }
}

async function twoSides(size: number, seed: number, times: Times) {
  const scene = await quorumScene({ servers: size })
  const memory = new Memory()
  memory.record('run', {
    seed,
    servers: size,
    waiterTtl,
    longestLease: times.lease,
    outageTimeout: times.outageTimeout,
  })
  // Record the split as one fault of all servers that lasts for the whole run. The checker then excuses calls that
  // fail, but it never excuses two holders.
  const servers = Array.from({ length: size }, (_, i) => i)
  memory.record('fault', { fault: 1, name: 'split', phase: 'begin', reach: 'server', servers })
  const [a, b] = await Promise.all([Side.of(scene, 'a', memory, times), Side.of(scene, 'b', memory, times)])
  const most = servers.slice(0, scene.majority)
  return { scene, memory, servers, a, b, most, fewest: servers.slice(scene.majority), random: new Random(seed, size) }
}

// This test fails if `const asked = grant.deadline - lease * DRIFT` becomes `const asked = grant.deadline + lease` in
// src/compose/quorum/ballots.ts: the holder relies on its hold for too long (I1, I8).
test.each(sizes)('I1 I8: the majority changes sides: the holder is notified before the other client holds (%i)', size =>
  seeded('majority', async seed => {
    // The second holder must renew in time, also on a machine that pauses for a second.
    const lease = 2_000
    const { scene, memory, servers, a, b, most, random } = await twoSides(size, seed, { lease, outageTimeout: 10_000 })
    const key = freshKey()
    const held = await a.recorded.lock(key)
    await scene.heldEverywhere(key, held.id)
    const others = random.shuffled(servers).slice(0, most.length)
    a.reach(servers.filter(i => !others.includes(i)))
    b.reach(others)
    const next = await within(2 * lease + waiterTtl + 2_000, b.recorded.lock(key, { fair: random.chance(0.5) }))
    expect(held.held).toBe(false)
    await within(500, aborted(held.signal))
    expect(held.signal.reason).toBeInstanceOf(LockLostError)
    expect(next.fencingToken).toBeGreaterThan(held.fencingToken)
    const again = a.recorded.lock(key)
    await sleep(lease)
    expect(next.signal.reason).toBeUndefined()
    expect(next.held).toBe(true)
    for (const side of [a, b]) side.reachAll()
    await sleep(200)
    expect(next.held).toBe(true)
    expect(await a.recorded.release(held)).toBe(false)
    expect(await b.recorded.release(next)).toBe(true)
    const last = await within(waiterTtl + 2_000, again)
    expect(last.fencingToken).toBeGreaterThan(next.fencingToken)
    expect(await a.recorded.release(last)).toBe(true)
    await scene.nothingLeft(key)
    checkPassing(memory.events)
  }),
)

// This test fails if `this.majority = Math.floor(sources.length / 2) + 1` becomes `this.majority = 1` in
// src/compose/quorum/backend.ts: one server's vote is enough, and each side has at least one server (I1).
test.each(sizes)('I1 I2 I4 I6 I8: the sides change all the time (%i)', size =>
  seeded('sides', async seed => {
    const lease = 900
    const outageTimeout = 1_000
    const { scene, memory, servers, a, b, random } = await twoSides(size, seed, { lease, outageTimeout })
    const key = freshKey()
    const end = performance.now() + 6_000
    let granted = 0
    const visits = async (side: Side, draws: Random) => {
      while (performance.now() < end) {
        const options = { timeout: 2_000, fair: draws.chance(0.5) }
        // Some critical sections are shorter than the lease, so the client releases its hold. Other critical sections
        // are longer, so the hold may be lost.
        const hold = draws.between(0, draws.chance(0.5) ? lease / 2 : 2 * lease)
        const call = side.recorded.lock(key, options).catch(error => {
          if (error instanceof LockTimeoutError || error instanceof LockConnectionError) return undefined
          throw error
        })
        const got: Lease | undefined = await within(2_000 + 1.5 * outageTimeout + 500, call, 'from its call')
        if (!got) continue
        granted += 1
        await sleep(hold)
        const released = side.recorded.release(got).catch(error => expect(error).toBeInstanceOf(LockConnectionError))
        await within(lease + 500, released, 'from its release')
      }
    }
    const splits = async () => {
      while (performance.now() < end) {
        await sleep(random.between(100, 1.5 * lease))
        const directions = random.pick<Direction[]>([['up'], ['down'], ['up', 'down']])
        const cut = random.int(1, size - 1)
        const order = random.shuffled(servers)
        a.reach(order.slice(0, cut), directions)
        b.reach(order.slice(cut), directions)
      }
    }
    await Promise.all([visits(a, new Random(seed, 11)), visits(b, new Random(seed, 12)), splits()])
    for (const side of [a, b]) side.reachAll()
    expect(granted).toBeGreaterThan(0)
    for (const side of [a, b, a]) {
      const got = await within(2 * lease + waiterTtl + 2_000, side.recorded.lock(key))
      expect(await side.recorded.release(got)).toBe(true)
    }
    await scene.nothingLeft(key)
    checkPassing(memory.events)
  }),
)

/**
 * Tests servers that come back without their data, one minority after the other, until no server remembers the original
 * grant.
 */
import { expect, test } from 'vitest'
import { checkPassing } from '../../history/check.ts'
import { Memory, RecordedClient } from '../../history/recorded.ts'
import { within } from '../../kit/outcomes.ts'
import { forgetful, quorumScene } from '../../kit/quorum-scene.ts'
import { Random } from '../../kit/random.ts'
import { freshKey } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'
import { allCount, FORGETFUL_LEASE as lease, seeded } from './trial.ts'

const waiterTtl = 3_000

// This test fails if `this.#joinLate(ballot)` is removed in src/compose/quorum/kind.ts: servers that came back without
// their data never get the hold again, and in the end no majority has it.
test('I1 I2 I3 I8: the holder keeps the lock, and the queue its order', { timeout: 120_000 }, async () => {
  await Promise.all([play(3), play(5)])
})

function play(size: number): Promise<void> {
  return seeded(`${size} servers`, async seed => {
    const scene = await quorumScene({ servers: size, args: forgetful })
    await allCount(scene)
    const random = new Random(seed, size)
    const memory = new Memory()
    memory.record('run', { seed, servers: size, waiterTtl, longestLease: lease, outageTimeout: 5_000 })
    const clients = ['holder', 'first', 'second'].map(label => {
      return new RecordedClient(label, scene.client({ lease, waiterTtl, outageTimeout: 5_000, label }), memory)
    })
    const [holder, first, second] = clients as [RecordedClient, RecordedClient, RecordedClient]
    const other = scene.client({ lease })
    const key = freshKey()
    const held = await holder.lock(key)
    await scene.heldEverywhere(key, held.id)
    const waiters = []
    for (const client of [first, second]) {
      const lease = client.lock(key, { fair: true })
      waiters.push({ client, lease })
      await scene.queuedEverywhere(key, waiters.length)
    }

    const left = random.shuffled(Array.from({ length: size }, (_, i) => i))
    while (left.length > 0) {
      const struck = left.splice(0, scene.minority.length)
      await Promise.all(struck.map(i => scene.restartEmpty(i)))
      let counting = false
      const counted = allCount(scene).finally(() => {
        counting = true
      })
      while (!counting) {
        expect(await other.tryLock(key), `while ${struck} have forgotten`).toBeNull()
        expect(held.held).toBe(true)
        await sleep(50)
      }
      await counted
      await scene.heldEverywhere(key, held.id)
    }

    let last = held
    let lastClient = holder
    for (const { client, lease } of waiters) {
      expect(await lastClient.release(last)).toBe(true)
      const next = await within(waiterTtl + 1_000, lease)
      expect(next.fencingToken).toBeGreaterThan(last.fencingToken)
      last = next
      lastClient = client
    }
    expect(await lastClient.release(last)).toBe(true)
    await scene.nothingLeft(key)
    checkPassing(memory.events)
  })
}

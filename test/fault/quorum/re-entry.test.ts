/**
 * Tests calls of an owner that has the lock already, if different majorities of the servers granted the outer hold and the
 * re-entry.
 */
import { expect } from 'vitest'
import { promptly, within } from '../../kit/outcomes.ts'
import { quorumScene, test } from '../../kit/quorum-scene.ts'
import { freshKey } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'

/**
 * Server 3 has lost client A's hold. A re-enters with a longer lease while server 1 is away. Servers 2 and 3 grant the
 * re-entry, but only server 2 prolongs the lease of the outer hold. A releases the hold of the re-entry. When the lease
 * of the outer hold ends on server 1, servers 1 and 3 grant the lock to client B.
 */
// This test fails if `this.#kind.raised?.(first.name, hold.name) ?? hold.deadline` becomes `hold.deadline` in
// src/key/holds.ts: client A assumes that a majority has raised the outer lease.
test('I1: a longer re-entry raises the outer hold only as far as a majority of the servers has raised it', async () => {
  const scene = await quorumScene()
  const lease = 3_000
  const [a, b] = [scene.client({ lease: 60_000 }), scene.client()]
  await Promise.all([a!.isLocked('any'), b!.isLocked('any')])
  const key = freshKey()
  const outer = await a!.lock(key, { owner: 'me', lease })
  const begun = performance.now()
  await scene.heldEverywhere(key, outer.id)
  // Wait until every server has the token that the servers agreed on. A server that chose a smaller token receives the
  // agreed token later.
  const tokens = () => Promise.all([0, 1, 2].map(async i => (await scene.at(i).inspect(key)).fencingToken))
  await eventually(async () => (await tokens()).every(token => token === outer.fencingToken))
  expect(await scene.at(2).forceRelease(key)).toBe(true)
  scene.away(0)
  const inner = await promptly(a!.lock(key, { owner: 'me', lease: 60_000 }))
  expect([outer.held, inner.fencingToken]).toEqual([true, outer.fencingToken])
  expect(await promptly(inner.release())).toBe(true)
  await sleep(begun + lease + 500 - performance.now())
  scene.back(0)
  const taken = await b!.lock(key, { timeout: 10_000 })
  expect([outer.held, taken.held]).toEqual([false, true])
  expect(taken.fencingToken).toBeGreaterThan(outer.fencingToken)
})

/**
 * The release of the earlier holder reaches server 2 late, so the outer call has servers 0 and 1. Server 2 queues the nested
 * call, and server 1 answers it late.
 */
// This test fails if `if (this.#enter(ballot)) return` is removed in src/compose/quorum/waiters.ts: the nested call gives the vote of server 0 back, and stands in the queue behind its owner.
test.for([{ fair: true }, {}])(
  'I4: a nested call that one server queues and another answers late re-enters (%o)',
  async (options, { scene, key }) => {
    const [early, outer] = [await scene.linked(), await scene.linked({ waiterTtl: 60_000 })]
    await Promise.all([early, outer].map(({ locks }) => locks.isLocked(key)))
    const held = await early.locks.lock(key)
    await scene.heldEverywhere(key, held.id)
    const using = outer.locks.using(key, { fair: true }, async () => {
      const late = outer.links[1]!.rule({ direction: 'down', kind: 'commands' }, 'hold')
      const nested = outer.locks.using(key, options, ({ via }) => via)
      await sleep(400)
      late.lift()
      return nested
    })
    await scene.queuedEverywhere(key, 1)
    const late = early.links[2]!.rule({ direction: 'up', kind: 'commands', name: 'release' }, 'hold')
    const released = held.release()
    await late.happened
    await sleep(1_000)
    late.lift()
    await released
    expect(await within(10_000, using)).toBe('reentry')
  },
)

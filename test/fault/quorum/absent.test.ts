/**
 * Tests that a server which does not take part costs the client nothing: no requests, nothing to take back, and no
 * memory, however many uses there are meanwhile.
 */
import { expect } from 'vitest'
import { LockClosedError } from '../../../src/index.ts'
import { rejection, within } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import type { QuorumScene } from '../../kit/quorum-scene.ts'
import { quorumScene, test } from '../../kit/quorum-scene.ts'
import { freshKey } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'

const USES = 200
const USED = 'used'

const absences = [
  {
    name: 'out of reach',
    begin: async (scene: QuorumScene) => scene.away(2),
    end: async (scene: QuorumScene) => scene.back(2),
  },
  { name: 'dead', begin: (scene: QuorumScene) => scene.kill(2), end: (scene: QuorumScene) => scene.resume(2) },
  {
    name: 'frozen',
    begin: async (scene: QuorumScene) => scene.freeze(2),
    end: async (scene: QuorumScene) => scene.thaw(2),
  },
]

// This test fails if `return !rejects && (!up || lag > BEHIND)` becomes `return !rejects && !up` in
// src/compose/quorum/member.ts: the uses pile up in front of a frozen server. It also fails if
// `if (seat.member.drop(seat)) seat.free()` is removed in src/compose/quorum/ballots.ts: the server
// is asked for all of these locks when it comes back.
test.for(absences)(
  'I7 I9: a server that is $name is asked for nothing that was used meanwhile',
  async ({ begin, end }, { scene }) => {
    const locks = scene.client()
    const before = await locks.lock(freshKey())
    await scene.heldEverywhere(before.key, before.id)
    await begin(scene)
    // A frozen server is noticed when it has left a request unanswered for a second.
    await locks.using(freshKey(), () => sleep(1_500))
    await Promise.all(Array.from({ length: USES }, () => locks.using(freshKey(USED), () => {})))
    await end(scene)
    const after = await locks.lock(freshKey(), { fair: true })
    await scene.heldEverywhere(after.key, after.id)
    // A lock that was granted leaves its last token.
    expect((await scene.redis(2).keys(`lock:{${USED}*`)).length).toBeLessThan(USES / 4)
  },
)

// This test fails if `const final = hopeless && isFinal(error.cause)` becomes `const final = false` in
// src/compose/quorum/ballots.ts: each refused use is taken back once a second for 40 s.
test('I7 I9: a server that refuses a request and its withdrawal is not asked again', async ({ scene, key }) => {
  const locks = scene.client()
  await scene.redis(2).set(`lock:{${key}}`, 'mine')
  await Promise.all(Array.from({ length: USES }, () => locks.tryLock(key)))
  const calls = async () => /cmdstat_evalsha:calls=(\d+)/.exec(await scene.redis(2).info('commandstats'))?.[1]
  await sleep(1_000)
  const before = await calls()
  await sleep(1_500)
  expect(await calls()).toBe(before)
})

// This test fails if `Math.max(begun, this.#backend.answeredAt) + CLOSE_PATIENCE` becomes `clock.now() + CLOSE_PATIENCE`
// in src/session.ts: close waits until the frozen server's connection is given up.
test.each([0, 300])('I6: close gives up on a frozen server after 2 s, and after a drain of %i ms', async drain => {
  const scene = await quorumScene()
  const [locks, waiting] = [scene.client(), scene.client()]
  const lease = await locks.lock(freshKey())
  await scene.heldEverywhere(lease.key, lease.id)
  const parked = await park(waiting, lease.key, { fair: true })
  scene.freeze(2)
  const closed = [locks.close({ drain }), waiting.close({ drain })]
  await within(3_600, Promise.all([...closed, rejection(parked.lease, LockClosedError)]))
  scene.thaw(2)
})

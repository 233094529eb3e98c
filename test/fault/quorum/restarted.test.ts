/** Tests servers of a quorum that come back with all their data. */
import { expect, test } from 'vitest'
import { within } from '../../kit/outcomes.ts'
import { quorumScene } from '../../kit/quorum-scene.ts'
import { freshKey } from '../../kit/redis.ts'
import { persistsEveryWrite } from '../../kit/topologies/quorum-server.ts'

/** How long a server takes for each key when it loads its data, in µs. */
const DELAY = 300
const KEYS = 5_000

/**
 * A majority of the servers is restarted. They load their data for 1.5 s, and the client connects to them meanwhile.
 * While a server loads its data, it says that it does not persist writes.
 */
// This test fails if `if (/^loading:1/m.test(persistence)) return 'loading'` is removed in
// src/compose/quorum/eligibility.ts: the servers' votes count only after a minute.
test('I4: the votes of servers that persist every write count as soon as these have loaded their data', async () => {
  const scene = await quorumScene({ args: [...persistsEveryWrite, '--key-load-delay', `${DELAY}`] })
  const locks = scene.client({ lease: 60_000, outageTimeout: 10_000 })
  const before = await locks.lock(freshKey())
  await scene.heldEverywhere(before.key, before.id)
  const struck = [0, 1]
  for (const i of struck) {
    const writing = scene.redis(i).pipeline()
    for (let key = 0; key < KEYS; key++) writing.set(`filler-${key}`, '')
    await writing.exec()
  }
  await Promise.all(struck.map(i => scene.resume(i)))
  const after = await within(8_000, locks.lock(freshKey()))
  expect(await after.release()).toBe(true)
  expect(await before.release()).toBe(true)
})

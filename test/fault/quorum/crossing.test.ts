/** Tests fair calls that cross on their way, so that some servers queue the first before the second, and others after. */
import { expect, test } from 'vitest'
import { promptly } from '../../kit/outcomes.ts'
import { sharedScenes } from '../../kit/quorum-scene.ts'
import { freshKey } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { frozen, killed } from './faults.ts'

const scenes = sharedScenes([3, 5, 7])
const cases = [killed, frozen].flatMap(fault => ['free', 'held'].map(state => ({ ...fault, state })))

/**
 * A heartbeat comes a third of `waiterTtl` after the join, which is much later than what counts as prompt. So heartbeats
 * do not help here.
 */
const options = { waiterTtl: 90_000 }

// This test fails if `else this.#order(ballot)` is removed in src/compose/quorum/ballots.ts: the servers have
// different orders until the heartbeats of the waiters.
test.each(cases)(
  'I3 I4: a bare majority settles the order of two calls when it has queued them ($state, the others $name)',
  async ({ begin, state }) => {
    await Promise.all(
      [...scenes.values()].map(async scene => {
        const [a, b] = [await scene.linked(options), await scene.linked(options)]
        await Promise.all([a, b].map(async ({ locks }) => (await locks.lock(freshKey())).release()))
        await Promise.all(scene.minority.map(i => begin(scene, i)))
        const key = freshKey()
        const holder = state === 'held' ? await promptly(scene.client().lock(key)) : undefined
        const parts = Array.from({ length: scene.majority }, (_, i) => i)
        const late = parts.map(i => (i % 2 ? a : b).links[i]!.rule({ direction: 'up', name: 'acquire' }, 'hold'))
        const turns = Promise.all(
          [a, b].map(async ({ locks }) => {
            const lease = await locks.lock(key, { fair: true })
            expect(await lease.release()).toBe(true)
          }),
        )
        turns.catch(() => {})
        await Promise.all(late.map(({ happened }) => happened))
        const known = async (i: number) => {
          const { holders, waiters } = await scene.at(i).inspect(key)
          return holders.length + waiters.length === (holder ? 2 : 1)
        }
        for (const i of parts) await eventually(() => known(i))
        for (const rule of late) rule.lift()
        if (holder) {
          await eventually(async () => {
            const queues = await Promise.all(
              parts.map(async i => (await scene.at(i).inspect(key)).waiters.map(({ id }) => id)),
            )
            return queues.every(queue => queue.length === 2 && queue.join() === queues[0]?.join())
          })
          await holder.release()
        }
        await promptly(turns)
        await scene.nothingLeft(key)
      }),
    )
  },
)

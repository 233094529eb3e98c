/**
 * Runs a trial: a minority of the servers has a fault. Shortly before or after the fault begins, every step in the life
 * of a lock (stories.ts) is taken:
 *
 *   prepare ──▶ the steps and the fault begin, in random order ──▶ all steps end ──▶ the fault ends ──▶ nothing is left
 *
 * All random choices follow from a seed. A failure names the seed, and BATON_SEED=<n> repeats the same choices.
 */
import { expect } from 'vitest'
import { checkPassing } from '../../history/check.ts'
import { Memory, RecordedClient } from '../../history/recorded.ts'
import { within } from '../../kit/outcomes.ts'
import type { QuorumScene } from '../../kit/quorum-scene.ts'
import { Random } from '../../kit/random.ts'
import { freshKey } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'
import type { Fault } from './faults.ts'
import { Stage, stories } from './stories.ts'

/**
 * Lease for trials whose servers forget data, in ms. It is short, because the votes of a restarted server count only
 * after the longest lease.
 */
export const FORGETFUL_LEASE = 4_000
const LEASE = 30_000
/** The waiterTtl in ms. Waiters check their status every third of this time, which makes up for lost messages. */
const WAITER_TTL = 3_000
/**
 * The outageTimeout in ms. If a third of this time passes without an answer, a client reconnects. The fault lasts
 * longer than a third of this time.
 */
const OUTAGE = 3_000

/** How long before and after the beginning of the fault a step may be taken, in ms. */
const AROUND = { before: 15, after: 30 }

/** Calls `run` with a seed. If `run` fails, the error names the seed. */
export async function seeded(what: string, run: (seed: number) => Promise<void>): Promise<void> {
  const seed = Number(process.env['BATON_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  try {
    await run(seed)
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}\nBATON_SEED=${seed}`, { cause: error })
  }
}

/** Resolves when all servers have been up for so long that their votes count, even after a restart without data. */
export async function allCount(scene: QuorumScene, lease = FORGETFUL_LEASE): Promise<void> {
  for (let i = 0; i < scene.size; i++) {
    // Redis reports its uptime in whole seconds, so a client subtracts 1 s from it.
    await eventually(async () => (await scene.uptime(i)) >= Math.ceil((lease * 1.02) / 1_000) + 1, 2 * lease + 3_000)
  }
}

export function trial(scene: QuorumScene, fault: Fault): Promise<void> {
  return seeded(`${fault.name}, ${scene.size} servers`, seed => play(scene, fault, new Random(seed), seed))
}

async function play(scene: QuorumScene, fault: Fault, random: Random, seed: number): Promise<void> {
  if (fault.forgets) await allCount(scene)
  const lease = fault.forgets ? FORGETFUL_LEASE : LEASE
  const options = { lease, waiterTtl: WAITER_TTL, outageTimeout: OUTAGE }
  const memory = new Memory()
  memory.record('run', { seed, servers: scene.size, waiterTtl: WAITER_TTL, longestLease: lease, outageTimeout: OUTAGE })
  const own = ['a', 'b', 'c'].map(label => scene.client({ ...options, label }))
  const clients = own.map((locks, i) => new RecordedClient('abc'[i]!, locks, memory)) as unknown as Stage['clients']
  const chosen = stories.filter(({ contended }) => !(contended && fault.clock))
  const places = chosen.map((story, i) => ({
    story,
    stage: new Stage(scene, clients, freshKey(`${i}`), new Random(seed, i + 1)),
    at: random.between(-AROUND.before, AROUND.after),
  }))
  const struck = random.shuffled(Array.from({ length: scene.size }, (_, i) => i)).slice(0, scene.minority.length)

  const acts = await Promise.all(places.map(({ story, stage }) => story.prepare(stage)))
  const steps = places.map(async ({ story, at }, i) => {
    await sleep(AROUND.before + at)
    await acts[i]!().catch((error: Error) => {
      throw new Error(`${story.name}, ${Math.round(at)} ms after "${fault.name}" of ${struck}: ${error.message}`, {
        cause: error,
      })
    })
  })
  const done = Promise.allSettled(steps)
  await sleep(AROUND.before)
  await Promise.all(struck.map(server => fault.begin(scene, server)))
  const failures = (await done).flatMap(step => (step.status === 'rejected' ? [step.reason as Error] : []))
  for (const server of struck) await fault.end(scene, server)
  if (failures.length > 0) throw failures[0]

  // After the fault, the locks must still work, although servers may have missed requests or receive them late.
  await Promise.all(
    places.map(async ({ stage, story }) => {
      const fair = random.chance(0.5)
      const [one] = random.shuffled(clients)
      await stage.visit(one!, stage.lock(one!, { fair }), `${story.name}, after "${fault.name}" of ${struck}`)
    }),
  )
  await Promise.all(
    places.map(({ stage, story }) => nothingLeft(scene, stage.key, `${story.name}, "${fault.name}" of ${struck}`)),
  )
  for (const locks of own) expect(locks.stats()).toMatchObject({ waiting: 0, holding: 0 })
  await within(2_000, Promise.all(own.map(locks => locks.close())))
  checkPassing(memory.events)
}

/** Fails unless the lock is soon gone from every server. */
async function nothingLeft(scene: QuorumScene, key: string, what: string): Promise<void> {
  await scene.nothingLeft(key).catch(async () => {
    const states = await Promise.all(Array.from({ length: scene.size }, (_, i) => scene.at(i).inspect(key)))
    const left = states.map(({ holders, waiters }) => ({ holders, waiters }))
    throw new Error(`${what}: I7, there is something left: ${JSON.stringify(left)}`)
  })
}

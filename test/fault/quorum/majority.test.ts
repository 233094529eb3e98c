/**
 * Tests the loss of a majority of the servers. Meanwhile no client is granted the lock, every call settles in time, and
 * the holder is notified before the next grant.
 */
import { expect, test } from 'vitest'
import { LockConnectionError, LockLostError } from '../../../src/index.ts'
import { checkPassing } from '../../history/check.ts'
import { Memory, RecordedClient } from '../../history/recorded.ts'
import { aborted, outcomeOf, within } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import { type QuorumScene, sharedScenes } from '../../kit/quorum-scene.ts'
import { Random } from '../../kit/random.ts'
import { freshKey } from '../../kit/redis.ts'
import { sleep, stopwatch } from '../../kit/time.ts'
import { type Fault, frozen, killed, partitioned } from './faults.ts'
import { seeded } from './trial.ts'

const lease = 1_500
/**
 * The lease of the patient client. It is longer than the other leases and an outage together: the client may count a
 * vote that a server cast at the beginning of the outage, and must then have time left to release the lock.
 */
const patientLease = 10_000
const outageTimeout = 1_000
const waiterTtl = 1_500

const scenes = sharedScenes([3, 5])

/** A fault of a majority of the servers, which are chosen at random. */
class Loss {
  readonly #scene: QuorumScene
  readonly #fault: Fault
  readonly #memory: Memory
  readonly #servers: number[]
  #number = 0

  constructor(scene: QuorumScene, fault: Fault, memory: Memory, random: Random) {
    this.#scene = scene
    this.#fault = fault
    this.#memory = memory
    const all = Array.from({ length: scene.size }, (_, i) => i)
    this.#servers = random.shuffled(all).slice(0, scene.majority)
  }

  async begin(): Promise<void> {
    this.#number += 1
    this.#record('begin')
    await Promise.all(this.#servers.map(i => this.#fault.begin(this.#scene, i)))
  }

  async end(): Promise<void> {
    await Promise.all(this.#servers.map(i => this.#fault.end(this.#scene, i)))
    this.#record('end')
  }

  #record(phase: 'begin' | 'end'): void {
    const { name } = this.#fault
    this.#memory.record('fault', { fault: this.#number, name, phase, reach: 'server', servers: this.#servers })
  }
}

/** Runs `act` with three servers and with five servers, at the same time. */
async function play(fault: Fault, act: (stage: Stage) => Promise<void>): Promise<void> {
  await Promise.all([...scenes.values()].map(scene => playOver(scene, fault, act)))
}

function playOver(scene: QuorumScene, fault: Fault, act: (stage: Stage) => Promise<void>): Promise<void> {
  return seeded(`${fault.name}, ${scene.size} servers`, async seed => {
    const memory = new Memory()
    const terms = { seed, servers: scene.size, waiterTtl, longestLease: patientLease, outageTimeout }
    memory.record('run', terms)
    const random = new Random(seed, scene.size)
    const patient = scene.client({ lease: patientLease, waiterTtl, outageTimeout: 20_000, label: 'patient' })
    const stage = {
      scene,
      random,
      holder: new RecordedClient('holder', scene.client({ lease, waiterTtl, outageTimeout, label: 'holder' }), memory),
      others: scene.client({ lease, waiterTtl, outageTimeout, label: 'others' }),
      patient: new RecordedClient('patient', patient, memory),
      loss: new Loss(scene, fault, memory, random),
      key: freshKey(`${scene.size}`),
    }
    await act(stage)
    await scene.nothingLeft(stage.key)
    checkPassing(memory.events)
  })
}

interface Stage {
  readonly scene: QuorumScene
  readonly random: Random
  readonly holder: RecordedClient
  readonly others: ReturnType<QuorumScene['client']>
  readonly patient: RecordedClient
  readonly loss: Loss
  readonly key: string
}

const losses = [killed, frozen, ...partitioned]

// This test fails if `const asked = grant.deadline - lease * DRIFT` becomes `const asked = grant.deadline + lease` in
// src/compose/quorum/ballots.ts: the holder relies on its hold for too long (I1, I8). It also fails if `return well <
// this.majority ? noMajority(problems) : undefined` becomes `return undefined` in src/compose/quorum/backend.ts:
// the event `disconnected` does not report that the majority is lost (I6).
test.each(losses)('I1 I6 I8: every call settles, and the holder is notified before the next grant: $name', loss =>
  play(loss, async ({ scene, holder, others, patient, loss, key }) => {
    const held = await holder.lock(key)
    const mine = await others.lock(freshKey('mine'))
    await scene.heldEverywhere(key, held.id)
    const parked = [await park(others, key, { fair: true }), await park(others, key)].map(({ lease }) => lease)
    const disconnected = new Promise(resolve => others.once('disconnected', resolve))
    await loss.begin()
    const elapsed = stopwatch()
    const next = patient.lock(key, { fair: true })
    const free = freshKey('free')
    const calls = [
      others.lock(free),
      others.lock(free, { fair: true }),
      others.tryLock(free),
      others.tryLock(free, { timeout: 60_000 }),
      others.using(free, () => 'ran'),
      others.inspect(free),
      others.isLocked(free),
      others.forceRelease(free),
      mine.renew(),
    ]
    // A client notices within half of outageTimeout that a server is gone, because a command stays unanswered.
    const limit = 1.5 * outageTimeout + 1_000
    const outcomes = await within(limit, Promise.all([...calls, ...parked].map(call => outcomeOf<unknown>(call))))
    for (const [i, { error }] of outcomes.entries()) {
      const lost = error instanceof LockLostError && calls[i] === calls.at(-1)
      expect(lost || error instanceof LockConnectionError, `call ${i}: ${error}`).toBe(true)
    }
    await within(limit, disconnected)
    await within(lease + 500, aborted(held.signal))
    expect(held.held).toBe(false)
    expect(held.signal.reason).toBeInstanceOf(LockLostError)
    expect(elapsed()).toBeLessThan(lease + limit)
    expect(await within(limit, holder.release(held))).toBe(false)

    await loss.end()
    const last = await within(2 * lease + waiterTtl + 2_000, next)
    expect(last.fencingToken).toBeGreaterThan(held.fencingToken)
    expect(await patient.release(last)).toBe(true)
  }),
)

// This test fails if `const asked = grant.deadline - lease * DRIFT` becomes `const asked = grant.deadline + lease` in
// src/compose/quorum/ballots.ts: the holder relies on its hold for too long.
test.each(losses)(
  'I1 I4 I8: after about one lease without a majority, the holder keeps the lock, or is notified before the next grant: $name',
  loss =>
    play(loss, async ({ scene, random, holder, patient, loss, key }) => {
      const held = await holder.lock(key)
      await scene.heldEverywhere(key, held.id)
      const next = patient.lock(key, { fair: true })
      await scene.queuedEverywhere(key, 1)
      await loss.begin()
      await sleep(random.between(0.6, 1.2) * lease)
      await loss.end()
      // After this time, the holder either has been notified or keeps its hold.
      await sleep(lease)
      const kept = held.held
      if (!kept) await within(500, aborted(held.signal))
      expect(await holder.release(held)).toBe(kept)
      const last = await within(2 * lease + waiterTtl + 2_000, next)
      expect(last.fencingToken).toBeGreaterThan(held.fencingToken)
      expect(await patient.release(last)).toBe(true)
    }),
)

/**
 * Three processes that ask for the same lock in a loop take turns, even if one of them is farther from the server than
 * the others. The tests run in virtual time, so that noise of the machine does not decide which process is first.
 */
import { describe, expect, test } from 'vitest'
import { callTermsOf, type Settings, settingsOf } from '../../src/options.ts'
import { Random } from '../kit/random.ts'
import { type ClientWatcher, SimulatedClient } from './client.ts'
import type { Net } from './network.ts'
import { Server } from './server.ts'
import { Process, Timeline } from './timeline.ts'
import { Trace } from './trace.ts'

const KEY = 'k'
/** Round-trip times to the server, ms. */
const NEAR = 0.1
const FAR = 1.1
/** The time at which the test begins to record grants, in ms. By then, all processes take turns. */
const BEGINNING = 500
const GRANTS = 300

/** A watcher that ignores everything. */
const nobody = new Proxy({}, { get: () => () => {} }) as never

interface Asked {
  /** The round-trip time of each process, ms. */
  readonly distances: readonly number[]
  /** How many callers loop in each process. */
  readonly callers: readonly number[]
  /** ms for which each caller holds the lock. */
  readonly hold: number
  /** How many clients are subscribed to the unlock channel but never ask for the lock. */
  readonly listeners?: number
  readonly seed?: number
}

/** Returns the process of each grant, in order, and the total time in ms. */
async function order({ distances, callers, hold, listeners = 0, seed = 7 }: Asked): Promise<{ grants: number[]; ms: number }> {
  const settings: Settings = settingsOf({ fairAfter: Number.POSITIVE_INFINITY })
  const timeline = new Timeline()
  const server = new Server(timeline, nobody, settings.tokenMemory)
  const trace = new Trace(timeline, false)
  const grants: number[] = []
  let begun = BEGINNING
  const clients = distances.map((distance, i) => {
    const random = new Random(seed, i)
    const delay = { least: distance / 2, most: 0.6 * distance, spike: 0, spikes: 0 }
    const weather = { delay, messageLoss: 0, messageEcho: 0, messageLate: 0, noScript: 0 }
    const net: Net = {
      timeline,
      random,
      server,
      trace,
      weather: { ...weather, refusal: undefined, unreachable: new Map() },
    }
    return new SimulatedClient(net, new Process(`c${i}`, timeline, random), settings, 'mutex', nobody as ClientWatcher)
  })
  for (let i = 0; i < listeners; i++) {
    timeline.at(1, () => server.subscribe(`${clients[0]!.lockOf(KEY)}:unlock`, { receive() {} }))
  }
  const loop = async (i: number) => {
    const { process } = clients[i]!
    for (;;) {
      const lease = await clients[i]!.lock(KEY, callTermsOf({}, settings))
      if (timeline.now >= BEGINNING) {
        if (grants.length === 0) begun = timeline.now
        grants.push(i)
      }
      if (hold > 0) await new Promise<void>(resolve => process.after(hold, resolve))
      await lease!.release()
    }
  }
  for (const [i, count] of callers.entries()) {
    for (let n = 0; n < count; n++) timeline.at(20 + i + n / 10, () => void loop(i), clients[i]!.process)
  }
  while (grants.length < GRANTS) {
    const event = timeline.next()
    if (!event) break
    event.run()
    if (event.process) await new Promise(resolve => setImmediate(resolve))
  }
  return { grants, ms: timeline.now - begun }
}

/** Returns the largest number of grants of a process, divided by the smallest. */
function ratio(grants: readonly number[]): number {
  const counts = [0, 1, 2].map(i => grants.filter(grant => grant === i).length)
  return Math.max(...counts) / Math.min(...counts)
}

const places = [
  { where: 'all near', distances: [NEAR, NEAR, NEAR] },
  { where: 'all 1 ms away', distances: [FAR, FAR, FAR] },
  { where: 'one of them 1 ms farther away', distances: [NEAR, NEAR, FAR] },
]

describe.each(places)('three processes with one caller each, $where', ({ distances }) => {
  test.each([0, 1, 10, 50])('share the lock evenly if each holds it for %i ms', async hold => {
    const { grants } = await order({ distances, callers: [1, 1, 1], hold })
    expect(grants).toHaveLength(GRANTS)
    expect(ratio(grants)).toBeLessThan(1.5)
  })
})

test.each(places)('a process with one caller gets as many turns as those with 50, $where', async ({ distances }) => {
  const { grants } = await order({ distances, callers: [50, 50, 1], hold: 10 })
  expect(ratio(grants)).toBeLessThan(1.5)
})

const lonely = { distances: [NEAR], callers: [1], hold: 1 }

test('clients that are only subscribed cost little time', async () => {
  const time = async (listeners: number) => {
    let ms = 0
    // One run depends too much on the delays of its seed.
    for (let seed = 0; seed < 10; seed++) ms += (await order({ ...lonely, seed, listeners })).ms
    return ms
  }
  expect((await time(5)) / (await time(0))).toBeLessThan(1.05)
})

test('three processes share the lock evenly even if other clients are only subscribed', async () => {
  const { grants } = await order({ distances: [NEAR, NEAR, FAR], callers: [1, 1, 1], hold: 10, listeners: 5 })
  expect(ratio(grants)).toBeLessThan(1.5)
})

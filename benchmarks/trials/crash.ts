/** Measures the time from a crash until the next waiter gets the lock. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Drained } from '../contract.ts'
import { now } from '../harness/clock.ts'
import type { Worker } from '../harness/crew.ts'
import { quantile, withoutGaps } from '../harness/measures.ts'
import { merge, type Samples } from '../harness/samples.ts'
import { enqueue } from './queue.ts'
import { ending, type Findings, type Stage } from './stage.ts'

/** The lease in ms, for each rival whose lease can be set. */
const lease = 2_000

/** Kills a process that holds the lock, while another process has waiters. */
export async function crashHolder(stage: Stage): Promise<Findings> {
  const { scenario, limits } = stage.terms
  const [holder, survivor] = await Promise.all([stage.hire(0, 0, lease), stage.hire(1, scenario.waiters, lease)])
  await holder.ask({ op: 'hold' }, limits.answer)
  await enqueue(stage, [survivor], 0, scenario.hold)
  const killedAt = now()
  await holder.kill()
  const { samples, answer } = await collect(stage, survivor, limits.crash)
  return { figures: { ...ending([answer]).figures, nextGrant: samples.acquired[0]! - killedAt } }
}

const ordinaryTimes = 5
const crashes = 3
/** The number of waiters of the surviving process, which are behind the crashed ones in the queue. */
const survivors = 10
/** How long the server may take to notice that the connections of a killed process have ended, in ms. */
const noticed = 100

/**
 * Kills a process whose waiters are queued, and measures the time from the holder's release to the next grant. In each
 * repetition, the waiters of the victim process queue first, and the waiters of the surviving process queue behind
 * them. Then the victim is killed, and the holder releases.
 */
export async function crashWaiters(stage: Stage): Promise<Findings> {
  const { scenario, limits } = stage.terms
  const [holder, survivor, ...victims] = await Promise.all([
    stage.hire(0, 0),
    stage.hire(1, survivors),
    ...Array.from({ length: crashes }, (_, i) => stage.hire(2 + i, scenario.waiters)),
  ])
  const answers: Drained[] = []
  /**
   * Resolves to the ms from the holder's release to the next grant. Resolves to undefined if a waiter of the surviving
   * process was not granted the lock in time.
   */
  const grant = async (prepare: () => Promise<void>): Promise<number | undefined> => {
    await holder.ask({ op: 'hold' }, limits.crash)
    await prepare()
    const { calledAt } = await holder.ask({ op: 'drop' }, limits.answer)
    const { samples, answer } = await collect(stage, survivor, limits.crash)
    answers.push(answer)
    return answer.unfinished > 0 || samples.length === 0 ? undefined : samples.acquired[0]! - calledAt
  }
  const ordinary = await repeat(ordinaryTimes, () => grant(() => enqueue(stage, [survivor], 0, 0)))
  const after = await repeat(crashes, time =>
    grant(async () => {
      const victim = victims[time]!
      await enqueue(stage, [victim], 0, 0)
      await enqueue(stage, [survivor], 0, 0)
      await victim.kill()
      await sleep(noticed)
    }),
  )
  const { figures } = ending(answers)
  return {
    figures: withoutGaps({ ...figures, nextGrant: quantile(after, 0.5), ordinaryHandoff: quantile(ordinary, 0.5) }),
  }
}

/**
 * Repeats a measurement. Stops at the first failure, because later repetitions would fail as well and use up their
 * whole time limit.
 */
async function repeat(times: number, one: (time: number) => Promise<number | undefined>): Promise<Float64Array> {
  const values: number[] = []
  for (let time = 0; time < times; time++) {
    const value = await one(time)
    if (value === undefined) break
    values.push(value)
  }
  return Float64Array.from(values)
}

async function collect(stage: Stage, worker: Worker, limit: number): Promise<{ samples: Samples; answer: Drained }> {
  const file = stage.file()
  const answer = await worker.ask({ op: 'collect', giveUpAt: now() + limit, file }, limit + stage.terms.limits.answer)
  return { answer, samples: merge(await stage.read([file]), { waiters: stage.terms.scenario.waiters, keys: 1 }) }
}

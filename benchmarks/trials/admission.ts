/**
 * Measures the time from a writer's release until all waiting readers hold the read lock at the same time. The writer
 * has its own process:
 *
 *  writer holds ──▶ all readers ask ──▶ settle ──▶ the writer releases ──▶ … ──▶ the last reader holds
 *                                                  │◀────── admission ─────────▶│
 *
 * The sequence runs once to count the messages, and then several times to measure the time.
 */
import type { Drained } from '../contract.ts'
import { sentBetween } from '../harness/census.ts'
import { now } from '../harness/clock.ts'
import { deliveries } from '../harness/deliveries.ts'
import { handoffs, quantile, withoutGaps } from '../harness/measures.ts'
import { merge, type Part } from '../harness/samples.ts'
import { enqueue } from './queue.ts'
import { ending, type Findings, type Stage } from './stage.ts'

/** How many times one trial measures the admission. */
const times = 10

export async function admission(stage: Stage): Promise<Findings> {
  const { scenario, server, limits, census } = stage.terms
  const [writer, readers] = await Promise.all([stage.hire(scenario.processes, 0), stage.hireAll()])
  const answers: Drained[] = []
  const parts: Part[] = []
  const drop = () => writer.ask({ op: 'drop' }, limits.answer)
  const queueUp = async () => {
    await writer.ask({ op: 'hold' }, limits.answer)
    await enqueue(stage, readers, 0, scenario.hold)
  }
  /** Resolves to the moment at which the last reader got the lock. */
  const collect = async () => {
    const files = readers.map(() => stage.file())
    const giveUpAt = now() + limits.drain
    const limit = limits.drain + limits.answer
    const asked = readers.map((reader, i) => reader.ask({ op: 'collect', giveUpAt, file: files[i]! }, limit))
    answers.push(...(await Promise.all(asked)))
    const mine = await stage.read(files)
    parts.push(...mine)
    return merge(mine, scenario).acquired.at(-1) ?? Number.NaN
  }

  await queueUp()
  const messages = await deliveries(server, drop)
  await collect()
  const before = await server.snapshot()
  const took: number[] = []
  for (let time = 0; time < times && answers.every(({ unfinished }) => unfinished === 0); time++) {
    await queueUp()
    const { calledAt } = await drop()
    took.push((await collect()) - calledAt)
  }
  const { commands } = sentBetween(before, await server.snapshot(), census ?? new Map())
  const samples = merge(parts, scenario)
  return {
    figures: withoutGaps({
      ...ending(answers).figures,
      acquisitions: samples.length,
      admission: quantile(Float64Array.from(took), 0.5),
      messages,
      // Each repetition has one acquisition for each reader and one for the writer.
      commands: census?.size ? commands / (took.length * (scenario.processes * scenario.waiters + 1)) : Number.NaN,
      overlaps: handoffs(samples, { from: 0, to: Number.POSITIVE_INFINITY }).overlaps,
    }),
  }
}

/**
 * What the end of a writer costs those who read. The writer is in a process of its own, all waiters ask for the read lock:
 *
 *   hold ──▶ all ask ──▶ settle ──▶ the writer lets go ──▶ … ──▶ the last reader has it     they hold, so that all do at once
 *                                   │◀───────── admission ─────▶│
 *                         snapshot ─┤ its release has returned ├─ snapshot: the messages that it caused
 */
import type { Drained } from '../contract.ts'
import { sentBetween } from '../harness/census.ts'
import { now } from '../harness/clock.ts'
import { handoffs, quantile, withoutGaps } from '../harness/measures.ts'
import { merge, type Part } from '../harness/samples.ts'
import type { Snapshot } from '../harness/server.ts'
import { enqueue } from './queue.ts'
import { ending, type Findings, type Stage } from './stage.ts'

/** How often the readers are admitted in one trial. */
const times = 10

export async function admission(stage: Stage): Promise<Findings> {
  const { scenario, server, limits, census } = stage.terms
  const [writer, readers] = await Promise.all([stage.hire(scenario.processes, 0), stage.hireAll()])
  const answers: Drained[] = []
  const took: number[] = []
  const messages: number[] = []
  const parts: Part[] = []
  let commands = 0
  for (let time = 0; time < times; time++) {
    await writer.ask({ op: 'hold' }, limits.answer)
    const empty = await server.snapshot()
    await enqueue(stage, readers, 0, scenario.hold)
    const before = await server.snapshot()
    const { calledAt } = await writer.ask({ op: 'drop' }, limits.answer)
    const dropped = await server.snapshot()
    const files = readers.map(() => stage.file())
    const giveUpAt = now() + limits.drain
    answers.push(
      ...(await Promise.all(
        readers.map((reader, i) =>
          reader.ask({ op: 'collect', giveUpAt, file: files[i]! }, limits.drain + limits.answer),
        ),
      )),
    )
    const mine = await stage.read(files)
    parts.push(...mine)
    took.push(merge(mine, scenario).acquired.at(-1)! - calledAt)
    messages.push(published(dropped) - published(before))
    commands += sentBetween(empty, await server.snapshot(), census ?? new Map()).commands
    if (answers.some(({ unfinished }) => unfinished > 0)) break
  }
  const samples = merge(parts, scenario)
  const { figures } = ending(answers)
  return {
    figures: withoutGaps({
      ...figures,
      acquisitions: samples.length,
      admission: quantile(Float64Array.from(took), 0.5),
      messages: quantile(Float64Array.from(messages), 0.5),
      ...(census?.size ? { commands: commands / samples.length } : {}),
      overlaps: handoffs(samples, { from: 0, to: Number.POSITIVE_INFINITY }).overlaps,
    }),
  }
}

function published({ calls }: Snapshot): number {
  return calls.get('publish') ?? 0
}

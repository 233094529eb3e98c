/**
 * A closed loop. The first moments, until everything is connected, queued and compiled, are not measured:
 *
 *   startAt ──warm up──▶ from ──────────── the window: --seconds ────────────▶ endAt ──finish──▶ giveUpAt
 *                        │ snapshot                                            │ snapshot
 *
 * What is counted over all the loop rather than in the window: starved waiters, overlaps, overtaking, the longest wait.
 */
import { sentBetween } from '../harness/census.ts'
import { now, until } from '../harness/clock.ts'
import { distribution, fairnessOverTime, handoffs, jain, ordinary, shares, withoutGaps } from '../harness/measures.ts'
import { merge, type Samples } from '../harness/samples.ts'
import type { Snapshot } from '../harness/server.ts'
import { ending, type Findings, type Stage } from './stage.ts'

/** Added to the warm-up for each waiter of a process, ms: the first turn of many takes longest, and all have to have had one. */
const perWaiter = 1
/** From the order to the start, so that all processes have it in time. */
const lead = 50

export async function loop(stage: Stage): Promise<Findings> {
  const { scenario, server, seconds, limits, census } = stage.terms
  const { processes, waiters, keys, hold } = scenario
  const crew = await stage.hireAll()
  const files = crew.map(() => stage.file())
  const startAt = now() + lead
  const from = startAt + limits.warmUp + waiters * perWaiter
  const endAt = from + seconds * 1_000
  const giveUpAt = endAt + limits.finish
  const finished = Promise.all(
    crew.map((worker, i) =>
      worker.ask(
        { op: 'loop', startAt, endAt, giveUpAt, hold, keys, file: files[i]! },
        giveUpAt - now() + limits.answer,
      ),
    ),
  )
  // Raced, so that a worker that fails is not waited for.
  await Promise.race([finished, until(from)])
  const before = await server.snapshot()
  await Promise.race([finished, until(endAt)])
  const after = await server.snapshot()
  const answers = await finished

  const { figures, cpu } = ending(answers)
  const samples = merge(await stage.read(files), { waiters, keys })
  const window = { from, to: endAt }
  const all = processes * waiters
  const whole = { from: startAt, to: endAt }
  const inWhole = shares(samples, all, whole)
  const acquired = inWhole.reduce((sum, count) => sum + count, 0)
  return {
    figures: withoutGaps({
      ...figures,
      ...ordinary(samples, all, window),
      ...serverFigures(samples, before, after, census ?? new Map()),
      clientCpu: cpu / acquired,
      jain: jain(shares(samples, all, window)),
      starved: inWhole.filter(count => count === 0).length,
    }),
    handoffs: distribution(handoffs(samples, window).all),
    fairness: fairnessOverTime(samples, all, window),
  }
}

/** For each acquisition between the two snapshots; nothing for a rival that has a server of its own. */
export function serverFigures(
  { length, acquired }: Samples,
  before: Snapshot,
  after: Snapshot,
  census: Parameters<typeof sentBetween>[2],
) {
  let count = 0
  for (let i = 0; i < length; i++) if (acquired[i]! >= before.at && acquired[i]! <= after.at) count += 1
  const { commands } = sentBetween(before, after, census)
  if (commands < ownCommands || census.size === 0) return {}
  return {
    commands: commands / count,
    bytes: (after.bytes - before.bytes) / count,
    serverCpu: (after.cpu - before.cpu) / count,
  }
}

/** Fewer than this in a trial are somebody else's, such as a health check. */
const ownCommands = 10

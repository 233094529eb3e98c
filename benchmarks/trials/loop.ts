/**
 * A closed loop. The first moments, until everything is connected, queued and compiled, are not measured:
 *
 *  startAt ──queue up──▶ openAt ──warm up──▶ from ──────── the window: --seconds ────────▶ endAt ──finish──▶ giveUpAt
 *                                            │ snapshot                                   │ snapshot
 *
 * With a hold, the waiters of the processes ask in turn, A B A B …, while the first keeps the lock until all have
 * asked. A lock that keeps order then crosses processes at each hand-off, for as long as the loop lasts. If each
 * process asked at once for all its waiters, the queue would be in blocks of one process. Seven hand-offs of eight
 * would then stay within a process, and the eighth would come so rarely that its code is in no cache. Waits count from
 * `openAt` on. Without a hold all ask at once: within a few turns the lock itself determines the order.
 *
 * Some measures cover the whole loop rather than the window: starved waiters, overlaps, overtaking, the longest wait.
 */
import type { Scenario } from '../contract.ts'
import { sentBetween } from '../harness/census.ts'
import { now, until } from '../harness/clock.ts'
import {
  distribution,
  fairnessOverTime,
  handoffs,
  jain,
  longestOfMixed,
  longestOfPhases,
  ordinary,
  shares,
  withoutGaps,
} from '../harness/measures.ts'
import { merge, type Samples } from '../harness/samples.ts'
import { type Snapshot, together } from '../harness/server.ts'
import { ending, type Findings, type Stage } from './stage.ts'

/**
 * In ms, added to the warm-up for each waiter of a process: with many waiters the first turn takes longest, and all
 * must have had one.
 */
const perWaiter = 1
/** ms between two requests while all queue up. A process that is late by less than this does not change the order. */
const apart = 25
/**
 * In ms, added for a mixed crowd. Its unfair callers join the queue after a second, their default. Until then a loop
 * shows only the fair ones, and the first wait of the others began before `openAt`.
 */
export const patience = 2_000
/** In ms, if permits are in use: so long that none of them is renewed in the window. */
const leaseInUse = 120_000
/** In ms: time from the order to the start, so that all processes have received it. */
const lead = 50

export async function loop(stage: Stage): Promise<Findings> {
  const { scenario, seconds, limits, census } = stage.terms
  const { processes, waiters, keys, hold, lock, mixed, inUse, frozen } = scenario
  // All have the same lease: some rivals use the asking caller's lease to judge whether other holds have lapsed.
  const [crew] = await Promise.all(inUse ? [stage.hireAll(leaseInUse), holdOthers(stage, inUse)] : [stage.hireAll()])
  const files = crew.map(() => stage.file())
  const every = hold > 0 ? apart : 0
  const startAt = now() + lead
  const openAt = startAt + queueUp(scenario)
  const from = openAt + limits.warmUp + waiters * perWaiter + (mixed ? patience : 0)
  const endAt = from + seconds * 1_000
  const giveUpAt = endAt + limits.finish
  const finished = Promise.all(
    crew.map((worker, i) =>
      worker.ask(
        {
          op: 'loop',
          startAt: startAt + i * every,
          gap: processes * every,
          openAt,
          endAt,
          giveUpAt,
          hold,
          keys,
          file: files[i]!,
        },
        giveUpAt - now() + limits.answer,
      ),
    ),
  )
  // Raced with the workers, so that a worker that fails ends the wait.
  const reach = (moment: number) => Promise.race([finished, until(moment)])
  const snapshot = async () => together(await Promise.all(stage.answering.map(server => server.snapshot())))
  if (frozen) {
    // By then all are connected, and the initial effects of freezing are over before the window begins.
    await reach((openAt + from) / 2)
    stage.freeze()
  }
  await reach(from)
  const before = await snapshot()
  await reach(endAt)
  const after = await snapshot()
  const answers = await finished

  const { figures, cpu, tally } = ending(answers)
  const samples = merge(await stage.read(files), scenario)
  const window = { from, to: endAt }
  const all = processes * waiters
  const whole = { from: startAt, to: endAt }
  const inWhole = shares(samples, all, whole)
  const acquired = inWhole.reduce((sum, count) => sum + count, 0)
  return {
    figures: withoutGaps({
      ...figures,
      ...ordinary(samples, all, window, openAt),
      ...serverFigures(samples, before, after, census ?? new Map()),
      ...(tally && {
        attempts: tally.attempts / samples.length,
        secondRounds: tally.secondRounds / samples.length,
      }),
      clientCpu: cpu / acquired,
      jain: jain(shares(samples, all, window)),
      starved: inWhole.filter(count => count === 0).length,
      ...(mixed ? longestOfMixed(samples, waiters, openAt) : {}),
      ...(lock === 'readWrite' ? longestOfPhases(samples, openAt) : {}),
    }),
    handoffs: distribution(handoffs(samples, window).all),
    fairness: fairnessOverTime(samples, all, window),
  }
}

/** A process besides the crew takes this many permits, and keeps them until the trial ends. */
async function holdOthers(stage: Stage, inUse: number): Promise<void> {
  const { scenario, limits } = stage.terms
  const holder = await stage.hire(scenario.processes, 0, leaseInUse)
  await holder.ask({ op: 'hold', count: inUse }, limits.open)
}

/** ms until all have asked. */
export function queueUp({ processes, waiters, hold }: Scenario): number {
  return hold > 0 ? processes * waiters * apart : 0
}

/** Per acquisition between the two snapshots. Empty for a rival with its own server. */
export function serverFigures(
  { length, acquired }: Samples,
  before: Snapshot,
  after: Snapshot,
  census: Parameters<typeof sentBetween>[2],
) {
  let count = 0
  for (let i = 0; i < length; i++) if (acquired[i]! >= before.at && acquired[i]! <= after.at) count += 1
  const { commands, usec } = sentBetween(before, after, census)
  if (commands < ownCommands || census.size === 0) return {}
  return {
    commands: commands / count,
    bytes: (after.bytes - before.bytes) / count,
    serverCpu: (after.cpu - before.cpu) / count,
    commandTime: usec / commands,
  }
}

/** Fewer commands than this in a trial come from others, such as a health check. */
const ownCommands = 10

/**
 * A closed loop. The first moments, until everything is connected, queued and compiled, are not measured:
 *
 *  startAt ──queue up──▶ openAt ──warm up──▶ from ──────── the window: --seconds ────────▶ endAt ──finish──▶ giveUpAt
 *                                            │ snapshot                                   │ snapshot
 *
 * If waiters hold the lock for some time (`hold`), waiters of process A and B first ask in turn, A B A B …. Meanwhile
 * the first waiter keeps the lock until all have asked (`openAt`). If the lock keeps this order, every hand-off of the
 * loop goes to the other process. If each process asked at once for all its waiters, the queue would consist of blocks.
 * With eight waiters per process, seven of eight hand-offs would then stay within a process. The eighth hand-off would
 * go to the other process, but so rarely that its code is not in the CPU caches. The part of a wait before `openAt` is
 * not counted.
 *
 * If `hold` is 0, all waiters ask at once, because the lock itself determines the order after a few turns.
 *
 * Starved waiters, overlaps, overtaking and the longest wait are measured over the whole loop, not only in the window.
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
 * The time by which each waiter of a process prolongs the warm-up, in ms. So every waiter has had a turn before the
 * measured window.
 */
const perWaiter = 1
/** In ms: time between two requests while waiters queue up. A delay shorter than this does not change the order. */
const apart = 25
/**
 * The time by which a mixed crowd prolongs the warm-up, in ms. The unfair callers of the crowd join the queue after a
 * second (the default). Until then, only the fair callers get the lock.
 */
export const patience = 2_000
/**
 * In ms: the lease in a scenario in which an additional process holds permits. The lease is so long that none of these
 * permits is renewed in the measured window.
 */
const leaseInUse = 120_000
/** In ms: time between the order and the start, so that all processes have received the order in time. */
const lead = 50

export async function loop(stage: Stage): Promise<Findings> {
  const { scenario, seconds, limits, census } = stage.terms
  const { processes, waiters, keys, hold, lock, mixed, inUse, frozen } = scenario
  // The waiters get the same lease as the additional process, because some rivals use the caller's own lease to decide
  // whether the holds of other callers have expired.
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
  // If a worker fails, `finished` rejects and ends the wait.
  const reach = (moment: number) => Promise.race([finished, until(moment)])
  const snapshot = async () => together(await Promise.all(stage.answering.map(server => server.snapshot())))
  if (frozen) {
    // At this moment all clients are connected, and the first effects of freezing end before the measured window
    // begins.
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

/** Starts an additional process, which takes `inUse` permits and keeps them until the trial ends. */
async function holdOthers(stage: Stage, inUse: number): Promise<void> {
  const { scenario, limits } = stage.terms
  const holder = await stage.hire(scenario.processes, 0, leaseInUse)
  await holder.ask({ op: 'hold', count: inUse }, limits.open)
}

/** Returns the ms from the start of a loop until all waiters have asked. */
export function queueUp({ processes, waiters, hold }: Scenario): number {
  return hold > 0 ? processes * waiters * apart : 0
}

/** Returns figures per acquisition between the two snapshots; none if the rival uses its own server. */
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

/**
 * If a trial has fewer commands than this, the commands are not the rival's but, for example, those of a health check.
 */
const ownCommands = 10

/**
 * A closed loop. The first moments, until everything is connected, queued and compiled, are not measured:
 *
 *  startAt ──queue up──▶ openAt ──warm up──▶ from ──────── the window: --seconds ────────▶ endAt ──finish──▶ giveUpAt
 *                                            │ snapshot                                   │ snapshot
 *
 * If waiters hold the lock for some time (`hold`), the waiters of the processes A and B first ask in turn: A, B, A, B.
 * The first waiter keeps the lock until all waiters have asked (`openAt`). If the lock keeps this order, every hand-off
 * of the loop goes to the other process.
 *
 * Without turns, all waiters of A would be in the queue before all waiters of B. With eight waiters per process, seven
 * of eight hand-offs would then stay within a process. Hand-offs to the other process would be rare, and each would be
 * slower than usual, because its code would not be in the CPU caches.
 *
 * The part of a wait before `openAt` is not measured.
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
 * The time by which each waiter of a process prolongs the warm-up, in ms. The warm-up is then long enough for every
 * waiter to have a turn before the measured window.
 */
const perWaiter = 1
/**
 * The time between two requests while waiters queue up, in ms. If a request is late by less than this, the order of the
 * queue does not change.
 */
const apart = 25
/**
 * The time by which a mixed scenario prolongs the warm-up, in ms. Its unfair callers join the queue when they have
 * waited for `fairAfter`. Until then, only the fair callers get the lock.
 */
export const patience = 2_000
/**
 * The lease in a scenario in which an additional process holds permits, in ms. The lease is so long that this process
 * renews none of its permits in the measured window.
 */
const leaseInUse = 120_000
/** The time from the order to run a loop until `startAt`, in ms. In this time, the order reaches every worker. */
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
    // The servers freeze in the middle of the warm-up. By then, all clients are connected. The freeze delays clients
    // at first, and these delays are over before the measured window begins.
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

/**
 * Returns the server's figures per acquisition, from the two snapshots. Returns no figures if the rival uses its own
 * server.
 */
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
 * If the server counted fewer commands than this in a trial, the rival does not use this server. The few commands come,
 * for example, from a health check.
 */
const ownCommands = 10

/**
 * Waiters queue behind a holder, in a known order, and then have their turns one after another:
 *
 *  hold ──▶ each asks once, `gap` after the one before ──▶ settle ──▶ the holder releases ──▶ … ──▶ the last one holds
 *                                                                     │◀────────── drain ─────────▶│
 *
 * A short queue is filled and drained several times, because a few releases do not suffice to measure their cost.
 */

import type { Figures } from '../contract.ts'
import { sentBetween } from '../harness/census.ts'
import { now } from '../harness/clock.ts'
import type { Worker } from '../harness/crew.ts'
import {
  distribution,
  handoffs,
  jain,
  ofGroups,
  ordinary,
  overtaking,
  quantile,
  shares,
  withoutGaps,
} from '../harness/measures.ts'
import { merge, type Part } from '../harness/samples.ts'
import { ending, type Findings, type Stage } from './stage.ts'

const lead = 50
/**
 * Time between two requests of one process in a burst, in ms. Between them, each of the other processes asks once, at
 * equal distances. A request takes less time than such a distance, so all requests reach Redis in the planned order.
 */
const gap = 4
/** Drains of a short queue are repeated until there are about this many acquisitions. */
const enough = 300

export async function queue(stage: Stage): Promise<Findings> {
  const { scenario, server, limits, census } = stage.terms
  const { processes, waiters, hold, kind, permits = 1, groups } = scenario
  const all = processes * waiters
  const crew = await stage.hireAll()
  const times = Math.max(1, Math.round(kind === 'drain' ? enough / all : 1))
  const parts: Part[] = []
  const recorded = groups !== undefined && kind === 'drain' && server.own
  const releases: number[] = []
  let drained = 0
  let commands = 0
  let usec = 0
  let cpu = 0
  let figures: Figures = {}
  let last = { from: 0, to: 0 }
  for (let time = 0; time < times; time++) {
    const empty = await server.snapshot()
    await crew[0]!.ask({ op: 'hold', count: permits }, limits.answer)
    await enqueue(stage, crew, kind === 'burst' ? gap : 0, hold)
    const before = await server.snapshot()
    if (recorded) await server.recordScripts()
    const { calledAt } = await crew[0]!.ask({ op: 'drop' }, limits.answer)
    const files = crew.map(() => stage.file())
    const giveUpAt = now() + limits.drain
    const answers = await Promise.all(
      crew.map((worker, i) => worker.ask({ op: 'collect', giveUpAt, file: files[i]! }, limits.drain + limits.answer)),
    )
    const after = await server.snapshot()
    if (recorded) releases.push(...(await server.scriptTimes()))
    const ended = ending(answers)
    const mine = await stage.read(files)
    parts.push(...mine)
    const samples = merge(mine, scenario)
    last = { from: calledAt, to: samples.acquired.at(-1)! }
    drained += last.to - last.from
    cpu += ended.cpu
    figures = sumOf(figures, ended.figures)
    commands += sentBetween(empty, after, census ?? new Map()).commands
    usec += sentBetween(before, after, census ?? new Map()).usec
  }
  const samples = merge(parts, scenario)
  const everything = { from: 0, to: Number.POSITIVE_INFINITY }
  const counts = shares(samples, all, everything)
  // The first holders, which the samples do not contain, have acquired and released, too.
  const cycles = samples.length + times * permits
  const onServer =
    census?.size && commands > 0 ? { commands: commands / cycles, releaseCost: usec / samples.length } : {}
  return {
    figures: withoutGaps({
      ...figures,
      ...ordinary(samples, all, everything),
      ...onServer,
      releaseP50: quantile(Float64Array.from(releases), 0.5),
      ...(typeof groups === 'object' && ofGroups(samples, scenario, last.from)),
      throughput: samples.length / (drained / 1_000),
      clientCpu: cpu / samples.length,
      drain: drained / times,
      // With several drains, most pairs of requests consist of requests from two drains. These are never granted in
      // reverse order, and would make the share of inverted pairs too small. So the share is left out.
      inversions: times === 1 ? overtaking(samples).share : Number.NaN,
      jain: jain(counts),
      starved: counts.filter(count => count === 0).length,
    }),
    handoffs: distribution(handoffs(samples, everything).all),
  }
}

/** Resolves when all waiters have asked once and their requests have arrived. */
export async function enqueue(stage: Stage, crew: readonly Worker[], every: number, hold: number): Promise<void> {
  const { server, scenario, limits } = stage.terms
  const startAt = now() + lead
  const offset = every / crew.length
  const limit = lead + every * scenario.waiters + limits.answer
  await Promise.all(
    crew.map((worker, i) => worker.ask({ op: 'queue', startAt: startAt + i * offset, gap: every, hold }, limit)),
  )
  await server.settle(100, 2_000)
}

function sumOf(a: Figures, b: Figures): Figures {
  return { unfinished: (a.unfinished ?? 0) + (b.unfinished ?? 0), errors: (a.errors ?? 0) + (b.errors ?? 0) }
}

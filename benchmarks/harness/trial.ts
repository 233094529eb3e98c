/** Runs one trial: one rival in one scenario in one round. */
import type { Rival, Scenario, Trial } from '../contract.ts'
import { admission } from '../trials/admission.ts'
import { crashHolder, crashWaiters } from '../trials/crash.ts'
import { idle } from '../trials/idle.ts'
import { loop, patience, queueUp } from '../trials/loop.ts'
import { queue } from '../trials/queue.ts'
import { type Findings, Stage, type Terms } from '../trials/stage.ts'
import type { Server } from './server.ts'

const kinds: Record<Scenario['kind'], (stage: Stage) => Promise<Findings>> = {
  loop,
  burst: queue,
  drain: queue,
  admission,
  'crash-holder': crashHolder,
  'crash-waiters': crashWaiters,
  idle,
}

/**
 * Runs one trial, and always cleans up. A failure of the rival becomes the outcome of the trial, and does not
 * reject. An interruption of the run rejects, and so does a failure of the preparation or of the cleanup.
 */
export async function runTrial(round: number, terms: Terms): Promise<Trial> {
  const { rival, scenario, signal, servers, namespace } = terms
  const about = { rival: rival.name, scenario: scenario.name, round }
  const stage = await Stage.set(terms)
  try {
    const findings = await kinds[scenario.kind](stage)
    return { ...about, outcome: 'measured', ...findings }
  } catch (error) {
    signal.throwIfAborted()
    return { ...about, outcome: 'failed', reason: error instanceof Error ? error.message : String(error), figures: {} }
  } finally {
    await stage.clear()
    await Promise.all(servers.map(server => server.clear(namespace)))
  }
}

/** Returns why the rival is not tried in this scenario at all; undefined if it is tried. */
export function skipped(rival: Rival, scenario: Scenario): string | undefined {
  const oneKind = scenario.mixed && !rival.mixes ? 'its callers of one key cannot be both fair and unfair' : undefined
  return rival.skips?.[scenario.name] ?? oneKind
}

/** Returns why the scenario cannot be measured on these servers; undefined if it can be measured. */
export function unfit({ servers: wanted = 1, frozen = 0 }: Scenario, servers: readonly Server[]): string | undefined {
  if (wanted > servers.length) return `needs ${wanted} servers, which the benchmark starts only without --url`
  const able = servers.slice(0, wanted).every(server => server.canFreeze)
  return frozen > 0 && !able
    ? 'needs a server that can be frozen, but the servers are not processes of this machine'
    : undefined
}

/**
 * Returns why a rival gets no further round of a scenario; undefined if it gets one. `earlier` are the rival's earlier
 * rounds of the same scenario. A trial that failed would most likely fail again, and a call that never returns takes
 * all the time that it is given. If such trials were repeated, a run would spend most of its time on them.
 */
export function givenUp(earlier: readonly Trial[]): string | undefined {
  for (const { round, outcome, reason, figures } of earlier) {
    if (outcome === 'failed') return `failed in round ${round}: ${reason}`
    const { unfinished = 0 } = figures
    if (unfinished > 0)
      return `left ${unfinished} ${unfinished === 1 ? 'call' : 'calls'} that did not return in round ${round}`
  }
  return undefined
}

/** Returns the approximate length of a trial in ms, without the time to start workers. */
export function expected(scenario: Scenario, seconds: number): number {
  const { kind, waiters, mixed } = scenario
  const starting = 900
  switch (kind) {
    case 'loop':
      return starting + 700 + queueUp(scenario) + (mixed ? patience : 0) + seconds * 1_000 + 2 * waiters
    case 'burst':
      return starting + 1_500
    case 'drain':
      return starting + (waiters < 100 ? 9_000 : 3_000)
    case 'admission':
      return starting + 6_000 + 5 * waiters
    case 'crash-holder':
      return starting + 2_000
    case 'crash-waiters':
      return starting + 4_000
    case 'idle':
      return starting + 6_500 + Math.max(5, seconds) * 1_000
  }
}

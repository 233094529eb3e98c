/** Assembles the results of a run: its trials, a description of the machine, and notes that the reports show. */
import { existsSync } from 'node:fs'
import { packageRoot } from '../../local-redis/package-root.ts'
import type { Results, Trial } from '../contract.ts'
import { attainments } from '../report/verdict.ts'
import { versionOf } from '../rivals/index.ts'
import { machine, usage } from './machine.ts'
import type { Plan } from './plan.ts'
import type { Surroundings } from './surroundings.ts'

/** If other programs used more than this share of the cores, a note says so. */
const busy = 0.05

/**
 * Assembles the results. `notes` are the notes that were made during the run. This function adds further notes after
 * them.
 */
export async function resultsOf(
  plan: Plan,
  around: Surroundings,
  trials: readonly Trial[],
  notes: readonly string[],
): Promise<Results> {
  const { scenarios, rounds, seconds, rtt } = plan
  const {
    servers: [server],
    warm,
  } = around
  const rivals = await Promise.all(
    plan.rivals.map(async rival => {
      const { name, kind, fair, locks, note } = rival
      const version = await versionOf(rival)
      return { name, kind, fair, note, ...(locks && { locks }), ...(version === undefined ? {} : { version }) }
    }),
  )
  const results: Results = {
    format: 1,
    date: new Date().toISOString(),
    machine: {
      ...machine(),
      redis: server.version,
      warmCores: warm !== undefined && warm.refused === undefined,
      rtt,
    },
    options: { rounds, seconds },
    scenarios,
    rivals,
    trials,
    notes: [...notes, ...remarks(plan, around, trials)],
  }
  // The goals are this project's own, so only its clone shows them.
  return existsSync(new URL('benchmarks/', packageRoot)) ? { ...results, goals: attainments(results) } : results
}

/** Returns notes on conditions that affect the figures. */
function remarks(
  { rivals, rounds, rtt }: Plan,
  { warm, proxy, servers: [server] }: Surroundings,
  trials: readonly Trial[],
): string[] {
  const notes: string[] = []
  if (rounds < 3)
    notes.push(
      `The run has only ${rounds === 1 ? 'one round, so figures have no range' : `${rounds} rounds, so the range says little`}.`,
    )
  notes.push(...oursGivenUp(rivals, trials))
  if (warm === undefined) notes.push('Cores were not kept awake, so each wake-up may take 50 to 100 µs longer.')
  else if (warm.refused !== undefined) notes.push(`Cores could not be kept awake: ${warm.refused}.`)
  else notes.push('Cores were kept awake by one idle-priority busy loop each.')
  if (proxy) notes.push(`A proxy between clients and server added ${rtt} ms to each round trip.`)
  if (!server.own)
    notes.push(
      'The server was not started for this run. If it also served other clients, figures of server CPU, bytes and memory include that work.',
    )
  const shares = trials.filter(({ outcome }) => outcome !== 'skipped').map(trial => trial.busy ?? 0)
  const busyTrials = shares.filter(share => share > busy).length
  if (busyTrials > 0) {
    const most = Math.round(Math.max(...shares) * 100)
    notes.push(
      `The machine was busy with other programs in ${busyTrials} of ${shares.length} trials; they used up to ${most} % of the cores.`,
    )
  }
  if (usage() === undefined) notes.push('This system does not report how much of the cores other programs used.')
  return notes
}

/**
 * Returns notes about redis-baton's own locks. If a trial fails, or a call never returns, the run skips the later
 * rounds of this lock in this scenario. For a lock of redis-baton, this is a fault of redis-baton, so a note says it.
 * For other rivals, the reports mention skipped rounds beside the figures.
 */
function oursGivenUp(rivals: Plan['rivals'], trials: readonly Trial[]): string[] {
  const ours = new Set(rivals.filter(({ kind }) => kind === 'baton').map(({ name }) => name))
  const tried = new Set(
    trials.flatMap(trial => (trial.outcome === 'skipped' ? [] : [`${trial.rival} ${trial.scenario}`])),
  )
  const notes = trials
    .filter(
      ({ rival, scenario, outcome }) => outcome === 'skipped' && ours.has(rival) && tried.has(`${rival} ${scenario}`),
    )
    .map(({ rival, scenario, reason }) => `${rival} was left out of later rounds of ${scenario}: ${reason}`)
  return [...new Set(notes)]
}

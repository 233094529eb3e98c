/** The final report of a run: its trials, the machine that it ran on, and what its reader has to know. */
import type { Results, Trial } from '../contract.ts'
import { attainments } from '../report/verdict.ts'
import { versionOf } from '../rivals/index.ts'
import { machine, usage } from './machine.ts'
import type { Plan } from './plan.ts'
import type { Surroundings } from './surroundings.ts'

/** If other programs used more than this share of the machine, the reader has to know. */
const busy = 0.05

/** `notes` are remarks from during the run; they come first. */
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
  return { ...results, goals: attainments(results) }
}

/** How the run was made, where that affects its figures. */
function remarks(
  { rivals, rounds, rtt }: Plan,
  { warm, proxy, servers: [server] }: Surroundings,
  trials: readonly Trial[],
): string[] {
  const notes: string[] = []
  if (rounds < 3) notes.push(`Only ${rounds === 1 ? 'one round' : `${rounds} rounds`}: the range says little.`)
  notes.push(...oursGivenUp(rivals, trials))
  if (warm === undefined) notes.push('Cores were not kept awake: each wake-up may cost 50 to 100 µs more.')
  else if (warm.refused !== undefined) notes.push(`Cores could not be kept awake: ${warm.refused}.`)
  else notes.push('Cores were kept awake by one idle-priority busy loop each.')
  if (proxy) notes.push(`A proxy between clients and server added ${rtt} ms to each round trip.`)
  if (!server.own) notes.push('The server was there before: what else it did counts as if it were for the locks.')
  const shares = trials.filter(({ outcome }) => outcome !== 'skipped').map(trial => trial.busy ?? 0)
  const busyTrials = shares.filter(share => share > busy).length
  if (busyTrials > 0) {
    const most = Math.round(Math.max(...shares) * 100)
    notes.push(`The machine was busy with something else in ${busyTrials} of ${shares.length} trials, up to ${most} %.`)
  }
  if (usage() === undefined) notes.push('Whether the machine was busy with something else, this system does not tell.')
  return notes
}

/**
 * Rounds of redis-baton's own locks that were given up; there must be none. Other rivals' are mentioned beside their
 * figures.
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
    .map(({ rival, scenario, reason }) => `${rival} was not tried again in ${scenario}: ${reason}`)
  return [...new Set(notes)]
}

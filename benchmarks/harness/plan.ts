/** Defines what a run measures, and in which order. */
import { type Rival, type Scenario, takesPart } from '../contract.ts'
import type { ScenarioName } from '../scenarios.ts'
import type { Limits } from '../trials/stage.ts'
import { expected, skipped } from './trial.ts'

export interface Plan {
  readonly scenarios: readonly Scenario[]
  readonly rivals: readonly Rival[]
  readonly rounds: number
  /** The length of the measured part of a loop, in seconds. */
  readonly seconds: number
  /** ms added to the round trip between clients and server. */
  readonly rtt: number
  readonly warmCores: boolean
  /** The URL of the server to use. If undefined, the run starts its own servers. */
  readonly url: string | undefined
  readonly limits?: Partial<Limits>
  /** A module with rivals for the workers, in addition to the registered rivals. */
  readonly further?: string
}

/** A trial that the run has to make. */
export interface Turn {
  readonly rival: Rival
  readonly scenario: Scenario
  readonly round: number
}

/**
 * Returns all trials of a run, in order. Each round has all scenarios, so two scenarios of one round are as near to each
 * other in time as possible. A scenario has no trials of rivals that lack the scenario's kind of lock.
 */
export function turnsOf({ scenarios, rivals, rounds }: Plan): Turn[] {
  return Array.from({ length: rounds }, (_, i) =>
    scenarios.flatMap(scenario =>
      rivals.filter(rival => takesPart(rival, scenario)).map(rival => ({ rival, scenario, round: i + 1 })),
    ),
  ).flat()
}

/** What a quick run measures: how long callers wait, what a lock costs alone, and what parked waiters cost. */
export const quick: { readonly scenarios: readonly ScenarioName[]; readonly rivals: readonly string[] } = {
  scenarios: ['2x8-hold5', 'uncontended', 'idle-1000'],
  rivals: ['baton-fair', 'baton-unfair', 'floor-publish', 'floor-set', 'redis-semaphore', 'redlock', 'redlock-10ms'],
}
/** Parked waiters take most of the time of a quick run, so only these locks have them there. */
const quickIdle = ['baton-fair', 'redis-semaphore']

/** Returns the rival as it takes part in a quick run. */
export function hurried(rival: Rival): Rival {
  if (quickIdle.includes(rival.name)) return rival
  return { ...rival, skips: { ...rival.skips, 'idle-1000': 'is left out of the quick run' } }
}

/** ms that the short loop of a rival before the first round takes, for each kind of lock. */
const look = 2_500

/** Returns for how many ms a run will last, if its rivals are installed. */
export async function lengthOf(plan: Plan): Promise<number> {
  const missing = await Promise.all(plan.rivals.map(rival => rival.missing()))
  const rivals = plan.rivals.filter((_, i) => missing[i] === undefined)
  const turns = turnsOf({ ...plan, rivals }).filter(({ rival, scenario }) => skipped(rival, scenario) === undefined)
  return turns.reduce((sum, { scenario }) => sum + expected(scenario, plan.seconds), look * rivals.length)
}

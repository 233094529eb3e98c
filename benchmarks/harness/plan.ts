/** Defines what a run measures, and in which order. */
import { type Rival, type Scenario, takesPart } from '../contract.ts'
import type { Limits } from '../trials/stage.ts'

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

/** Returns all trials of a run, in order. A scenario has no trials of rivals that lack the scenario's kind of lock. */
export function turnsOf({ scenarios, rivals, rounds }: Plan): Turn[] {
  return scenarios.flatMap(scenario =>
    Array.from({ length: rounds }, (_, i) =>
      rivals.filter(rival => takesPart(rival, scenario)).map(rival => ({ rival, scenario, round: i + 1 })),
    ).flat(),
  )
}

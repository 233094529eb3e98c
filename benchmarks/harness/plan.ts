/** What a run is to measure, and in which order. */
import { type Rival, type Scenario, takesPart } from '../contract.ts'
import type { Limits } from '../trials/stage.ts'

export interface Plan {
  readonly scenarios: readonly Scenario[]
  readonly rivals: readonly Rival[]
  readonly rounds: number
  /** Of the measured part of a loop. */
  readonly seconds: number
  /** ms added between clients and server, there and back. */
  readonly rtt: number
  readonly warmCores: boolean
  /** Undefined: a server is started. */
  readonly url: string | undefined
  readonly limits?: Partial<Limits>
  /** A module with rivals for the workers, beside those that are registered. */
  readonly further?: string
}

/** What a trial is of. */
export interface Turn {
  readonly rival: Rival
  readonly scenario: Scenario
  readonly round: number
}

/** A rival has none in scenarios about a kind of lock that it does not have. */
export function turnsOf({ scenarios, rivals, rounds }: Plan): Turn[] {
  return scenarios.flatMap(scenario =>
    Array.from({ length: rounds }, (_, i) =>
      rivals.filter(rival => takesPart(rival, scenario)).map(rival => ({ rival, scenario, round: i + 1 })),
    ).flat(),
  )
}

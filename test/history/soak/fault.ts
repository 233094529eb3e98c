/** Types and helpers that the tables of faults share. */
import type { Reach } from '../events.ts'
import { now } from '../recorder.ts'
import type { Stage } from './stage.ts'

/**
 * What the plan chooses for a fault: `duration` in ms, and `dice`, a random number from which the fault makes its other
 * choices.
 */
export interface Choices {
  readonly duration: number
  readonly dice: number
}

/** A fault. `run` begins the fault, waits for its duration, and heals it. The promise of `run` resolves after that. */
export interface Fault<Args extends unknown[] = [], On = Stage> {
  readonly reach: Reach
  readonly run: (stage: On, choices: Choices, ...args: Args) => Promise<unknown>
}

/** Runs `take`, which removes holds from Redis. Records that holds were taken away while `take` ran. */
export async function taking(
  { recorder }: Pick<Stage, 'recorder'>,
  key: string | undefined,
  how: string,
  take: () => Promise<unknown>,
): Promise<void> {
  const from = now()
  try {
    await take()
  } finally {
    recorder.record('taken', { ...(key !== undefined && { key }), from, how })
  }
}

export function call({ admin }: Stage, command: string, ...args: string[]): Promise<unknown> {
  return admin.call(command, ...args)
}

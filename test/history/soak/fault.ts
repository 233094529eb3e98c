/** Types and helpers that the tables of faults share (faults.ts). */
import { now } from '../recorder.ts'
import type { Server } from './server.ts'
import type { Stage } from './stage.ts'

/** What the plan chooses for a fault. */
export interface Choices {
  /** In ms. 0 if the fault has no duration. */
  readonly duration: number
  /** A random number from which the fault makes its other choices. */
  readonly dice: number
  /** The numbers of all servers that are hit at the same time. */
  readonly all: readonly number[]
}

/** `On` is what the fault applies to: a process, a line, a server or a key. */
export interface Fault<On> {
  /** How often the fault comes, compared with others that apply to the same. */
  readonly weight: number
  /** The longest duration in ms. Absent if the fault has no duration. */
  readonly longest?: number
  /** Only if the fault disturbs no waiters. Otherwise, it may disturb all waiters of what it applies to. */
  readonly reach?: 'nothing'
  /** Whether the fault may hit a majority of several servers, or of one process's lines to them, at once. */
  readonly ofMajority?: true
  /** Begins the fault, waits for its duration, and heals it. */
  run(stage: Stage, on: On, choices: Choices): Promise<unknown>
}

export type Faults<On> = Readonly<Record<string, Fault<On>>>

/** Runs `take`, which removes holds from Redis. Records that holds were taken away while `take` ran. */
export async function taking(
  { recorder }: Stage,
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

export function call({ redis }: Server, command: string, ...args: string[]): Promise<unknown> {
  return redis.call(command, ...args)
}

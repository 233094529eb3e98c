/** What a run is played on: servers, the processes that work with them, and what can be done to either. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Fields } from '../events.ts'
import { now, type Recorder } from '../recorder.ts'
import type { Post } from './post.ts'

/** A fault of the plan. */
export interface Act {
  /** ms after the beginning of the storm, or of the calm. */
  readonly at: number
  readonly name: string
  /** Does it after whatever it has to wait for: what is done to one and the same thing comes one after another. */
  inTurn(step: () => Promise<void>): Promise<void>
  /** Whom it is done to, in its turn. */
  whom(): Omit<Fields<'fault'>, 'fault' | 'name' | 'phase'>
  /** Begins, lasts, and is healed. */
  run(): Promise<unknown>
}

/** What every scene has, whatever its servers are. */
export interface Ground {
  readonly recorder: Recorder
  readonly posts: readonly Post[]
  /** Names of the locks. */
  readonly keys: readonly string[]
  /** The register of the witnesses, which no fault reaches. */
  readonly register: Redis
  /** Ends the processes, whatever their state. */
  abandon(): void
}

export interface Scene {
  readonly stage: Ground
  /** Begins to look at the servers, and at the event loop. */
  open(): void
  /** The faults of a storm of so many ms, by their time. */
  storm(length: number): readonly Act[]
  /** Those that a calm of so many ms has to bear: of them no lock may be still. */
  calm(length: number): readonly Act[]
  /** Names of what is left on the servers after everything has run out. */
  left(): Promise<string[]>
  /** Ends what is still there. */
  close(): Promise<void>
}

/** Steps that are done one after another. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()

  inTurn(step: () => Promise<void>): Promise<void> {
    const done = this.#last.then(step)
    this.#last = done
    return done
  }
}

/** Waits until it is so, or for `limit` ms. */
export async function until(reached: () => boolean | Promise<boolean>, limit: number): Promise<void> {
  for (const end = now() + limit; now() < end && !(await reached()); ) await sleep(20)
}

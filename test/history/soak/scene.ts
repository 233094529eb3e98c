/** The parts of a run: servers, the processes that work with them, and the faults of both. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Fields } from '../events.ts'
import { now, type Recorder } from '../recorder.ts'
import type { Post } from './post.ts'

export interface Act {
  /** When the fault begins, in ms after the beginning of the storm or of the calm. */
  readonly at: number
  readonly name: string
  /** Waits until the earlier faults of the same target have ended, and then runs `step`. */
  inTurn(step: () => Promise<void>): Promise<void>
  /**
   * Returns the target of the fault. Call this function only when the fault's turn has come, because another process
   * may have taken the place of the target before that.
   */
  whom(): Omit<Fields<'fault'>, 'fault' | 'name' | 'phase'>
  /** Begins the fault, waits for its duration, and heals the fault. */
  run(): Promise<unknown>
}

/** The parts that a run has both with one server and with a quorum. */
export interface Ground {
  readonly recorder: Recorder
  readonly posts: readonly Post[]
  readonly keys: readonly string[]
  /** The connection to the server of the witnesses' register (witnesses.ts). No fault reaches that server. */
  readonly register: Redis
  /** Ends the processes, whatever their state. */
  abandon(): void
}

export interface Scene {
  readonly stage: Ground
  /** Starts to watch the servers and the event loop. */
  open(): void
  /** Returns the faults of a storm of `length` ms, in the order of time. */
  storm(length: number): readonly Act[]
  /** Returns the faults of a calm of `length` ms. Every lock must still make progress during these faults. */
  calm(length: number): readonly Act[]
  /** Returns the names of keys that are left on the servers after everything has expired. */
  left(): Promise<string[]>
  close(): Promise<void>
}

/** Runs steps one after another. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()

  inTurn(step: () => Promise<void>): Promise<void> {
    const done = this.#last.then(step)
    this.#last = done
    return done
  }
}

/** Waits until `reached` returns true, or for `limit` ms. */
export async function until(reached: () => boolean | Promise<boolean>, limit: number): Promise<void> {
  for (const end = now() + limit; now() < end && !(await reached()); ) await sleep(20)
}

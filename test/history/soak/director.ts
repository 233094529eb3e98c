/** Plays a plan: storms of faults, calms between them, and the end, after which nothing may be left. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../../kit/random.ts'
import type { Reach } from '../events.ts'
import { now } from '../recorder.ts'
import { readRegister } from '../witnesses.ts'
import { keyFaults } from './key-faults.ts'
import { type Planned, Planner } from './plan.ts'
import { processFaults } from './process-faults.ts'
import { serverFaults } from './server-faults.ts'
import type { Stage } from './stage.ts'
import { CALM, DRAIN_BOUND, LONGEST_LEASE, STORM, type Terms, TOKEN_MEMORY, WAITER_TTL } from './terms.ts'

/** The stream of the plan; those of the processes are far from it. */
const PLAN = 1_000_000
/** How long the processes may take to be at work, ms. */
const WARMING_UP = 10_000
/** How long a process may take to end after it was told to close its client, ms. */
const FAREWELL = 8_000
/** When the last key of a lock has expired at the latest: lua/shared/life.lua, enqueue.lua; and Redis may be slow to see it. */
const RUN_OUT = Math.max(LONGEST_LEASE, 2 * WAITER_TTL) + 1.25 * TOKEN_MEMORY + 1_500

export class Director {
  readonly #stage: Stage
  readonly #terms: Terms
  readonly #failures: string[] = []
  #serverTurn: Promise<void> = Promise.resolve()
  #faults = 0

  constructor(stage: Stage, terms: Terms) {
    this.#stage = stage
    this.#terms = terms
  }

  get faults(): number {
    return this.#faults
  }

  /** Faults that could not be played: the soak itself is at fault then. */
  get failures(): readonly string[] {
    return this.#failures
  }

  async play(): Promise<void> {
    const planner = new Planner(new Random(this.#terms.seed, PLAN), this.#terms.processes, this.#terms.keys)
    const end = now() + this.#terms.minutes * 60_000
    // A fault that finds nobody at work has proved nothing.
    await until(() => this.#stage.posts.every(({ inbox }) => inbox !== undefined), WARMING_UP)
    do {
      this.#stage.recorder.record('storm', {})
      await this.#storm(planner.storm(Math.min(STORM, Math.max(0, end - now() - CALM))))
      this.#stage.recorder.record('calm', {})
      await sleep(CALM)
    } while (end - now() > 2 * CALM)
    await this.#finish()
  }

  async #storm(plan: readonly Planned[]): Promise<void> {
    const start = now()
    const played: Promise<void>[] = []
    for (const fault of plan) {
      await sleep(Math.max(0, start + fault.at - now()))
      played.push(this.#play(fault))
    }
    await Promise.all(played)
  }

  /** What happens to a process comes after what happened to it before; what happens to the server, after all that did. */
  #play(planned: Planned): Promise<void> {
    const stage = this.#stage
    if (planned.scope === 'process') {
      const post = stage.posts[planned.process]!
      const { reach, run } = processFaults[planned.name]
      return post.inTurn(() => this.#fault(planned, reach, { worker: post.worker }, () => run(stage, planned, post)))
    }
    this.#serverTurn = this.#serverTurn.then(() => {
      if (planned.scope === 'server') {
        const { reach, run } = serverFaults[planned.name]
        return this.#fault(planned, reach, {}, () => run(stage, planned))
      }
      const key = stage.keys[planned.key]!
      const { reach, run } = keyFaults[planned.name]
      return this.#fault(planned, reach, { key }, () => run(stage, planned, key))
    })
    return this.#serverTurn
  }

  async #fault({ name }: Planned, reach: Reach, whom: { worker?: string; key?: string }, run: () => Promise<unknown>) {
    const { recorder } = this.#stage
    const fields = { fault: ++this.#faults, name, reach, ...whom }
    recorder.record('fault', { ...fields, phase: 'begin' })
    try {
      await run()
    } catch (error) {
      this.#failures.push(`${name}: ${error}`)
    } finally {
      recorder.record('fault', { ...fields, phase: 'end' })
    }
  }

  async #finish(): Promise<void> {
    const { keys, posts, recorder, admin, register } = this.#stage
    recorder.record('healed', { bound: DRAIN_BOUND })
    for (const post of posts) post.tell('drain')
    await until(() => posts.every(post => post.drained), DRAIN_BOUND + 2_000)
    await Promise.all(posts.map(post => post.dismiss(FAREWELL)))
    await this.#stage.locks.close()
    await until(async () => (await admin.dbsize()) === 0, RUN_OUT)
    recorder.record('left', { names: await admin.keys('*') })
    for (const key of keys) recorder.record('register', { key, entries: await readRegister(register, key) })
  }
}

async function until(reached: () => boolean | Promise<boolean>, limit: number): Promise<void> {
  for (const end = now() + limit; now() < end && !(await reached()); ) await sleep(20)
}

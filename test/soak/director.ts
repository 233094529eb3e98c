/** Plays a plan: storms of faults, calms between them, and the end, after which nothing may be left. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reach } from '../history/events.ts'
import { now } from '../history/recorder.ts'
import { type Planned, planStorm } from './plan.ts'
import { processFaults } from './process-faults.ts'
import { Random } from './random.ts'
import { keyFaults, serverFaults } from './server-faults.ts'
import type { Stage } from './stage.ts'
import { CALM, DRAIN_BOUND, keyNames, LONGEST_LEASE, STORM, type Terms, TOKEN_MEMORY, WAITER_TTL } from './terms.ts'
import { readRegister } from './witnesses.ts'

/** The stream of the plan; those of the processes are far from it. */
const PLAN = 1_000_000
/** How long a process may take to end after it was told to close its client, ms. */
const FAREWELL = 8_000
/** When the last key of a lock has expired at the latest: lua/include/life.lua, enqueue.lua; and Redis may be slow to see it. */
const RUN_OUT = Math.max(LONGEST_LEASE, 2 * WAITER_TTL) + 1.25 * TOKEN_MEMORY + 1_500

export class Director {
  readonly #stage: Stage
  readonly #terms: Terms
  readonly #keys: readonly string[]
  readonly #failures: string[] = []
  #serverTurn: Promise<void> = Promise.resolve()
  #faults = 0

  constructor(stage: Stage, terms: Terms) {
    this.#stage = stage
    this.#terms = terms
    this.#keys = keyNames(terms.keys)
  }

  get faults(): number {
    return this.#faults
  }

  /** Faults that could not be played: the soak itself is at fault then. */
  get failures(): readonly string[] {
    return this.#failures
  }

  async play(): Promise<void> {
    const random = new Random(this.#terms.seed, PLAN)
    const end = now() + this.#terms.minutes * 60_000
    do {
      this.#stage.recorder.record('storm', {})
      const plan = planStorm(random, this.#terms.processes, this.#terms.keys)
      const length = Math.min(STORM, Math.max(0, end - now() - CALM))
      await this.#storm(plan.filter(({ at }) => at < length))
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

  #play(planned: Planned): Promise<void> {
    if (planned.scope === 'process') {
      const post = this.#stage.posts[planned.process]!
      const { reach, run } = processFaults[planned.name]
      return post.inTurn(() => this.#fault(planned, reach, { worker: post.worker }, () => run(post, planned.duration)))
    }
    this.#serverTurn = this.#serverTurn.then(() => {
      if (planned.scope === 'server') {
        const { reach, run } = serverFaults[planned.name]
        return this.#fault(planned, reach, {}, () => run(this.#stage, planned.duration))
      }
      const key = this.#keys[planned.key]!
      const { reach, run } = keyFaults[planned.name]
      return this.#fault(planned, reach, { key }, () => run(this.#stage, key, planned.duration))
    })
    return this.#serverTurn
  }

  async #fault({ name }: Planned, reach: Reach, whom: { worker?: string; key?: string }, run: () => Promise<void>) {
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
    const { posts, recorder, admin, register } = this.#stage
    recorder.record('healed', { bound: DRAIN_BOUND })
    for (const post of posts) post.tell('drain')
    await until(() => posts.every(post => post.drained), DRAIN_BOUND + 2_000)
    await Promise.all(posts.map(post => post.dismiss(FAREWELL)))
    await this.#stage.locks.close()
    await until(async () => (await admin.dbsize()) === 0, RUN_OUT)
    recorder.record('left', { names: await admin.keys('*') })
    for (const key of this.#keys) recorder.record('register', { key, entries: await readRegister(register, key) })
  }
}

async function until(reached: () => boolean | Promise<boolean>, limit: number): Promise<void> {
  for (const end = now() + limit; now() < end && !(await reached()); ) await sleep(20)
}

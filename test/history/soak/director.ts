/** Directs a run: storms of faults with calms between them. At the end of the run, nothing may be left in Redis. */
import { setTimeout as sleep } from 'node:timers/promises'
import { keysWith } from '../../kit/admin.ts'
import { Random } from '../../kit/random.ts'
import type { Fields } from '../events.ts'
import { now } from '../recorder.ts'
import { readRegister } from '../witnesses.ts'
import { Plan, type Planned } from './plan.ts'
import type { Stage } from './stage.ts'
import { CALM, DRAIN_BOUND, PLAN, runOut, STORM, type Terms } from './terms.ts'

/** How long the processes may take to begin their work, in ms. */
const WARMING_UP = 10_000
/** How long a process may take to end after it was asked to close its client, in ms. */
const FAREWELL = 8_000
/** The last blow of a calm begins at least this many ms before the calm ends. */
const PEACE = 1_000

type Whom = Omit<Fields<'fault'>, 'fault' | 'name' | 'phase'>

export class Director {
  readonly #stage: Stage
  readonly #terms: Terms
  readonly #overlapping: Plan
  readonly #successive: Plan
  /** Chooses the pauses between faults. Their number depends on the timing, so they are no part of the plan. */
  readonly #pauses: Random
  readonly #failures: string[] = []
  #faults = 0

  constructor(stage: Stage, terms: Terms) {
    this.#stage = stage
    this.#terms = terms
    const numbers = {
      processes: terms.processes,
      keys: terms.keys.length,
      servers: stage.size,
      alive: stage.servers.length,
    }
    this.#overlapping = new Plan('overlapping', new Random(terms.seed, PLAN), numbers)
    this.#successive = new Plan('successive', new Random(terms.seed, PLAN + 1), numbers)
    this.#pauses = new Random(terms.seed, PLAN + 2)
  }

  get faults(): number {
    return this.#faults
  }

  /** Faults that could not be carried out. These are errors of the soak itself. */
  get failures(): readonly string[] {
    return this.#failures
  }

  async play(): Promise<void> {
    const end = now() + this.#terms.minutes * 60_000
    const { posts, recorder } = this.#stage
    // Before the processes are at work, a fault would prove nothing.
    await until(() => posts.every(({ atWork }) => atWork), WARMING_UP)
    for (let last = false; !last; ) {
      recorder.record('storm', {})
      const over = Math.min(now() + STORM, end - CALM)
      last = end - over <= 3 * CALM
      // On a slow machine, the last storm goes on until every kind has come.
      const goesOn = () => now() < over || (last && this.#successive.hasNew)
      await Promise.all([this.#overlap(over), this.#succeed(goesOn)])
      recorder.record('calm', {})
      await Promise.all([sleep(CALM), this.#calm(now() + CALM - PEACE)])
    }
    await this.#finish()
  }

  /** Begins faults that may overlap, until the time `over`. Waits for their ends. */
  async #overlap(over: number): Promise<void> {
    const played: Promise<unknown>[] = []
    for (await this.#pause(0, 300); now() < over; await this.#pause(100, 900)) {
      played.push(...this.#overlapping.next().map(planned => this.#play(planned)))
    }
    await Promise.all(played)
  }

  /** Plays blows one after another. */
  async #succeed(goesOn: () => boolean, group?: 'server'): Promise<void> {
    for (await this.#pause(0, 300); goesOn(); await this.#pause(50, 500)) {
      await Promise.all(this.#successive.next(group).map(planned => this.#play(planned)))
    }
  }

  /**
   * In a calm, every lock must make progress and no call may fail. So there are only blows against minorities of several
   * servers, and none at all if a minority is dead.
   */
  async #calm(over: number): Promise<void> {
    if (this.#successive.spare > 0) await this.#succeed(() => now() < over, 'server')
  }

  #pause(least: number, most: number): Promise<void> {
    return sleep(this.#pauses.int(least, most))
  }

  #play(planned: Planned): Promise<unknown> {
    const stage = this.#stage
    const { fault, all } = planned
    const post = stage.posts[planned.process]!
    const server = stage.servers[planned.server]!
    const key = stage.keys[planned.key]!
    const { reach } = fault
    const hit = (servers: readonly number[]) => stage.size > 1 && { servers }
    switch (fault.target) {
      case 'process':
      case 'line':
        return post.inTurn(() => {
          const whom = { reach: reach ?? 'worker', worker: post.worker } as const
          if (fault.target === 'process') return this.#record(planned, whom, () => fault.run(stage, post, planned))
          const lines = all.map(number => post.lines[number]!)
          const onEach = () => Promise.all(lines.map(line => line.inTurn(() => fault.run(stage, line, planned))))
          return this.#record(planned, { ...whom, ...hit(all) }, onEach)
        })
      case 'key':
        return this.#record(planned, { reach: reach ?? 'key', key }, () => fault.run(stage, key, planned))
      case 'clock': {
        // The step of one of several clocks disturbs no waiter.
        const whom = { reach: stage.size > 1 ? 'nothing' : 'server' } as const
        return this.#record(planned, whom, () => fault.run(stage, server, planned))
      }
      case 'server': {
        const whom = { reach: reach ?? 'server', ...hit([server.number]) } as const
        return this.#record(planned, whom, () => fault.run(stage, server, planned))
      }
    }
  }

  async #record({ name }: Planned, whom: Whom, run: () => Promise<unknown>): Promise<void> {
    const { recorder } = this.#stage
    const fields = { fault: ++this.#faults, name, ...whom }
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
    const { keys, posts, recorder, register, locks, servers } = this.#stage
    recorder.record('healed', { bound: DRAIN_BOUND })
    for (const post of posts) post.tell('drain')
    await until(() => posts.every(post => post.drained), DRAIN_BOUND + 2_000)
    await Promise.all(posts.map(post => post.dismiss(FAREWELL)))
    await locks.close()
    let names: string[] = []
    await until(async () => {
      const left = servers.map(async ({ redis, number }) =>
        (await keysWith(redis, '')).map(name => `${name} of server ${number}`),
      )
      names = (await Promise.all(left)).flat()
      return names.length === 0
    }, runOut(this.#terms.times))
    recorder.record('left', { names })
    for (const key of keys) recorder.record('register', { key, entries: await readRegister(register, key) })
  }
}

/** Waits until `reached` returns true, or for `limit` ms. */
async function until(reached: () => boolean | Promise<boolean>, limit: number): Promise<void> {
  for (const end = now() + limit; now() < end && !(await reached()); ) await sleep(20)
}

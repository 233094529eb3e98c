/** Directs a run: storms of faults with calms between them. At the end of the run, nothing may be left in Redis. */
import { setTimeout as sleep } from 'node:timers/promises'
import { now } from '../recorder.ts'
import { readRegister } from '../witnesses.ts'
import { type Act, type Scene, until } from './scene.ts'
import { CALM, DRAIN_BOUND, STORM } from './terms.ts'

/** How long the processes may take to begin their work, in ms. */
const WARMING_UP = 10_000
/** How long a process may take to end after it was asked to close its client, in ms. */
const FAREWELL = 8_000

export class Director {
  readonly #scene: Scene
  readonly #failures: string[] = []
  #faults = 0

  constructor(scene: Scene) {
    this.#scene = scene
  }

  get faults(): number {
    return this.#faults
  }

  /** Faults that could not be carried out. These are errors of the soak itself. */
  get failures(): readonly string[] {
    return this.#failures
  }

  async play(minutes: number): Promise<void> {
    const scene = this.#scene
    const end = now() + minutes * 60_000
    const { posts, recorder } = scene.stage
    // Before the processes are at work, a fault would prove nothing.
    await until(() => posts.every(({ ways }) => ways.used), WARMING_UP)
    do {
      recorder.record('storm', {})
      await this.#play(scene.storm(Math.min(STORM, Math.max(0, end - now() - CALM))))
      recorder.record('calm', {})
      await Promise.all([sleep(CALM), this.#play(scene.calm(CALM))])
    } while (end - now() > 2 * CALM)
    await this.#finish()
  }

  async #play(plan: readonly Act[]): Promise<void> {
    const start = now()
    const played: Promise<void>[] = []
    for (const act of plan) {
      await sleep(Math.max(0, start + act.at - now()))
      played.push(act.inTurn(() => this.#fault(act)))
    }
    await Promise.all(played)
  }

  async #fault({ name, whom, run }: Act): Promise<void> {
    const { recorder } = this.#scene.stage
    const fields = { fault: ++this.#faults, name, ...whom() }
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
    const { keys, posts, recorder, register } = this.#scene.stage
    recorder.record('healed', { bound: DRAIN_BOUND })
    for (const post of posts) post.tell('drain')
    await until(() => posts.every(post => post.drained), DRAIN_BOUND + 2_000)
    await Promise.all(posts.map(post => post.dismiss(FAREWELL)))
    recorder.record('left', { names: await this.#scene.left() })
    for (const key of keys) recorder.record('register', { key, entries: await readRegister(register, key) })
  }
}

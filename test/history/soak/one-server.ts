/** The parts of a run whose locks are all on one server: the server, the processes, and the faults of both. */
import { Random } from '../../kit/random.ts'
import { Eyes } from './eyes.ts'
import type { Fault } from './fault.ts'
import { keyFaults } from './key-faults.ts'
import { type Planned, Planner } from './plan.ts'
import { processFaults } from './process-faults.ts'
import { type Act, type Scene, Turns, until } from './scene.ts'
import { serverFaults } from './server-faults.ts'
import { Stage } from './stage.ts'
import { PLAN, runOut, type Terms } from './terms.ts'

export const faultsOfOneServer = [processFaults, serverFaults, keyFaults].flatMap(Object.keys)

export class OneServer implements Scene {
  readonly stage: Stage
  readonly #eyes: Eyes
  readonly #planner: Planner
  readonly #terms: Terms
  /** Faults of the server and of single locks run one after another. */
  readonly #turns = new Turns()

  private constructor(stage: Stage, terms: Terms) {
    this.stage = stage
    this.#eyes = new Eyes(stage)
    this.#planner = new Planner(new Random(terms.seed, PLAN), terms.processes, terms.keys.length)
    this.#terms = terms
  }

  static async open(terms: Terms): Promise<OneServer> {
    return new OneServer(await Stage.open(terms), terms)
  }

  open(): void {
    this.#eyes.open()
  }

  storm(length: number): Act[] {
    return this.#planner.storm(length).map(planned => this.#act(planned))
  }

  calm(): Act[] {
    return []
  }

  async left(): Promise<string[]> {
    const { locks, admin } = this.stage
    await locks.close()
    await until(async () => (await admin.dbsize()) === 0, runOut(this.#terms.times))
    return admin.keys('*')
  }

  async close(): Promise<void> {
    this.#eyes.close()
    await this.stage.close()
  }

  #act(planned: Planned): Act {
    const stage = this.stage
    if (planned.scope === 'process') {
      const post = stage.posts[planned.process]!
      const fault = processFaults[planned.name]
      const whom = () => ({ reach: fault.reach, worker: post.worker })
      return { ...timed(planned), inTurn: step => post.inTurn(step), whom, run: () => fault.run(stage, planned, post) }
    }
    const inTurn = (step: () => Promise<void>) => this.#turns.inTurn(step)
    if (planned.scope === 'server') {
      const fault: Fault = serverFaults[planned.name]
      return { ...timed(planned), inTurn, whom: () => ({ reach: fault.reach }), run: () => fault.run(stage, planned) }
    }
    const key = stage.keys[planned.key]!
    const { reach, run } = keyFaults[planned.name]
    return { ...timed(planned), inTurn, whom: () => ({ reach, key }), run: () => run(stage, planned, key) }
  }
}

function timed({ at, name }: Planned) {
  return { at, name }
}

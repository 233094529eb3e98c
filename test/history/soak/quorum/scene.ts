/**
 * A run with mutexes over a quorum: the servers, the processes, and the faults of both. Each process has a connection
 * to each server.
 *
 * Servers persist every write. A server that has come back empty is the exception: it must report that it does not
 * persist, so that clients do not count its votes yet. It persists again once all clients certainly count its votes.
 */
import { LockConnectionError } from '../../../../src/index.ts'
import { keysWith } from '../../../kit/admin.ts'
import { Random } from '../../../kit/random.ts'
import { taking } from '../fault.ts'
import { looking } from '../looks.ts'
import { type Act, type Scene, Turns, until } from '../scene.ts'
import { PLAN, runOut, type Terms } from '../terms.ts'
import { workerFaults } from '../worker-faults.ts'
import { faultNames, nameOf, type Planned, QuorumPlanner } from './plan.ts'
import { clockFaults, serverFaults } from './server-faults.ts'
import { type Emptied, QuorumStage } from './stage.ts'
import { majorityOf } from './terms.ts'

export { faultNames as faultsOfQuorum }

/** Interval between records of the servers' times of day, in ms. */
const COMPARE = 5_000

export class QuorumScene implements Scene {
  readonly stage: QuorumStage
  readonly #terms: Terms
  readonly #planner: QuorumPlanner
  readonly #blows = new Blows()
  readonly #keyTurns = new Turns()
  #ends: (() => void)[] = []

  private constructor(stage: QuorumStage, terms: Terms) {
    this.stage = stage
    this.#terms = terms
    this.#planner = new QuorumPlanner(new Random(terms.seed, PLAN), {
      processes: terms.processes,
      keys: terms.keys.length,
      servers: stage.servers.length,
      spare: stage.servers.length - majorityOf(stage.size),
    })
  }

  static async open(terms: Terms, servers: number, emptied: Emptied, dies: boolean): Promise<QuorumScene> {
    return new QuorumScene(await QuorumStage.open(terms, servers, emptied, dies), terms)
  }

  open(): void {
    const readClocks = () => {
      for (const server of this.stage.servers) this.stage.readClock(server)
    }
    readClocks()
    const comparing = setInterval(readClocks, COMPARE)
    this.#ends = [() => clearInterval(comparing), looking(this.stage.recorder, () => {})]
  }

  storm(length: number): Act[] {
    return this.#planner.storm(length).map(planned => this.#act(planned))
  }

  calm(length: number): Act[] {
    return this.#planner.calm(length).map(planned => this.#act(planned))
  }

  async left(): Promise<string[]> {
    const { locks, servers } = this.stage
    await locks.close()
    const left = () =>
      Promise.all(
        servers.map(async ({ number, admin }) =>
          (await keysWith(admin, '')).map(name => `${name} of server ${number}`),
        ),
      )
    await until(async () => (await left()).flat().length === 0, runOut(this.#terms.times))
    return (await left()).flat()
  }

  async close(): Promise<void> {
    for (const end of this.#ends) end()
    await this.stage.close()
  }

  #act(planned: Planned): Act {
    return { at: planned.at, name: nameOf(planned), ...this.#deed(planned) }
  }

  #deed(planned: Planned): Pick<Act, 'inTurn' | 'whom' | 'run'> {
    const stage = this.stage
    if (planned.scope === 'worker' || planned.scope === 'lines') {
      const post = stage.posts[planned.process]!
      const inTurn = (step: () => Promise<void>) => post.inTurn(step)
      if (planned.scope === 'worker') {
        const { reach, run } = workerFaults[planned.name]
        return { inTurn, whom: () => ({ reach, worker: post.worker }), run: () => run(stage, planned, post) }
      }
      const { name, servers } = planned
      const lines = servers.map(number => post.ways.lines[number]!)
      return {
        inTurn,
        whom: () => ({ reach: 'worker', worker: post.worker, servers }),
        run: () => Promise.all(lines.map(line => line.break(name, planned))),
      }
    }
    if (planned.scope === 'key') {
      const key = stage.keys[planned.key]!
      return {
        inTurn: step => this.#keyTurns.inTurn(step),
        whom: () => ({ reach: 'nothing', key }),
        run: () => taking(stage, key, planned.name, () => forceRelease(stage, key)),
      }
    }
    const { server: number, blow } = planned
    const server = stage.servers[number]!
    const inTurn = (step: () => Promise<void>) => this.#blows.inTurn(blow, step)
    if (planned.scope === 'clock') {
      const run = clockFaults[planned.name]
      const all = [number]
      return { inTurn, whom: () => ({ reach: 'nothing' }), run: () => run(stage, { ...planned, all }, server) }
    }
    const run = serverFaults[planned.name]
    return { inTurn, whom: () => ({ reach: 'server', servers: [number] }), run: () => run(stage, planned, server) }
  }
}

async function forceRelease({ locks }: QuorumStage, key: string): Promise<void> {
  try {
    await locks.forceRelease(key)
  } catch (error) {
    // A call that cannot reach a majority is expected to fail with this error.
    if (!(error instanceof LockConnectionError)) throw error
  }
}

/** A blow is one or more server faults at the same time. Blows come one after another. */
class Blows {
  #before: Promise<unknown> = Promise.resolve()
  #number = 0
  #parts: Promise<void>[] = []

  inTurn(number: number, step: () => Promise<void>): Promise<void> {
    if (number !== this.#number) {
      this.#before = Promise.all([this.#before, ...this.#parts])
      this.#number = number
      this.#parts = []
    }
    const done = this.#before.then(step)
    this.#parts.push(done)
    return done
  }
}

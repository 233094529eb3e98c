/** Measures what clients and servers spend between two moments. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from '../../benchmarks/harness/server.ts'
import type { Crew } from './crew.ts'
import type { Spent } from './figures.ts'

interface Moment {
  readonly at: number
  readonly client: number
  /** The CPU that each server has used, in µs. */
  readonly servers: readonly number[]
  /**
   * The number of scripts and messages that clients have sent. The counter also includes messages that scripts publish,
   * but during these measurements they publish none.
   */
  readonly commands: number
}

/**
 * CPU in µs: `client` is the sum over all client processes, `server` the sum over all servers, and `servers` has the
 * CPU of each server.
 */
export interface Watched extends Spent {
  readonly servers: readonly number[]
  readonly seconds: number
  readonly commands: number
}

export class Meter {
  readonly #crew: Crew
  readonly #servers: readonly Server[]

  constructor(crew: Crew, servers: readonly Server[]) {
    this.#crew = crew
    this.#servers = servers
  }

  async of(action: () => Promise<unknown>): Promise<Watched> {
    const before = await this.#moment()
    await action()
    const after = await this.#moment()
    const servers = after.servers.map((cpu, i) => cpu - before.servers[i]!)
    return {
      client: after.client - before.client,
      server: servers.reduce((sum, cpu) => sum + cpu, 0),
      servers,
      seconds: (after.at - before.at) / 1_000,
      commands: after.commands - before.commands,
    }
  }

  /** Measures the CPU per second while no call is made. */
  async idle(seconds: number): Promise<{ idling: Spent; commandsPerSecond: number }> {
    const watched = await this.of(() => sleep(seconds * 1_000))
    const commandsPerSecond = round(watched.commands / watched.seconds)
    return { idling: each(watched, watched.seconds), commandsPerSecond }
  }

  async #moment(): Promise<Moment> {
    const client = await this.#crew.ask('cpu', {})
    const snapshots = await Promise.all(this.#servers.map(server => server.snapshot()))
    const commands = snapshots.flatMap(({ calls }) =>
      ['evalsha', 'eval', 'publish', 'spublish'].map(name => calls.get(name) ?? 0),
    )
    return {
      at: performance.now(),
      client,
      servers: snapshots.map(({ cpu }) => cpu),
      commands: commands.reduce((sum, calls) => sum + calls, 0),
    }
  }
}

/** Returns the cost of one thing, from the cost of `count` of them. */
export function each({ client, server }: Spent, count: number): Spent {
  return { client: round(client / count), server: round(server / count) }
}

export function round(figure: number): number {
  return Math.round(figure * 100) / 100
}

/** Measures the memory of clients and server, once temporary memory has been freed. */
export async function memories(crew: Crew, server: Server): Promise<Spent> {
  await server.settle(500, 5_000)
  await sleep(2_500)
  const { memory } = await server.snapshot()
  return { client: await crew.ask('memory', {}), server: memory }
}

export function gained(before: Spent, after: Spent): Spent {
  return { client: after.client - before.client, server: after.server - before.server }
}

/**
 * The plan of the faults: their order, their targets and their durations, all of which follow from the seed. Every kind
 * comes once, in random order, before any kind is repeated. After that, kinds are drawn by their weights. How many faults
 * a storm or a calm has depends on the timing. Calms take only faults of servers, and take them ahead of their turn.
 *
 * Faults come in two tracks. Those of the track `overlapping` may overlap all others. Those of the track `successive`
 * come in blows, one after another. A blow is a fault of one server, of its clock or of one lock. Of several servers, it
 * hits a minority, each server with a fault of its own, or a majority, all with the same fault.
 */
import type { Random } from '../../kit/random.ts'
import type { Choices } from './fault.ts'
import { type AnyFault, faultsOf } from './faults.ts'
import { majorityOf } from './terms.ts'

type Track = 'overlapping' | 'successive'
/** What a fault hits: a target of the table of faults, or a majority of the servers or of a process's lines to them. */
type Group = AnyFault['target'] | 'servers' | 'lines'
type Weights = Readonly<Partial<Record<Group, number>>>

/** How often faults of each group come, compared with the others of the same track. */
const weights: Readonly<Record<'one' | 'several', Record<Track, Weights>>> = {
  one: {
    overlapping: { process: 23, line: 73 },
    successive: { key: 115, server: 54, clock: 6 },
  },
  several: {
    overlapping: { process: 25, line: 40, lines: 10, key: 25 },
    successive: { server: 6, servers: 2, clock: 1 },
  },
}

/** A kind of fault. */
interface Kind {
  readonly group: Group
  readonly fault: AnyFault
}

/** Returns the name of a kind in the history. */
function nameOf({ group, fault }: Kind): string {
  return group === 'servers' || group === 'lines' ? `${fault.name}, of a majority` : fault.name
}

function kindsOf(servers: number, track: Track): Kind[] {
  const groups = Object.keys(weights[servers === 1 ? 'one' : 'several'][track]) as Group[]
  const inGroup =
    (group: Group) =>
    ({ target, ofMajority }: AnyFault) =>
      target === group || (ofMajority && `${target}s` === group)
  return groups.flatMap(group =>
    faultsOf(servers)
      .filter(inGroup(group))
      .map(fault => ({ group, fault })),
  )
}

/** Returns the names of all kinds of a run with locks on so many servers. */
export function kindNames(servers: number): string[] {
  return (['overlapping', 'successive'] as const).flatMap(track => kindsOf(servers, track).map(nameOf))
}

/** A fault that is to be played. Of the process, the server and the key, those that the fault applies to are hit. */
export interface Planned extends Choices {
  readonly name: string
  readonly fault: AnyFault
  /** Index among the posts. */
  readonly process: number
  /** Indices among the servers that are alive, and among the keys. */
  readonly server: number
  readonly key: number
}

const SHORTEST = 50
const DICE = 1_000_000

interface Numbers {
  readonly processes: number
  readonly keys: number
  /** The number of all servers, and of those that are alive. */
  readonly servers: number
  readonly alive: number
}

export class Plan {
  readonly #random: Random
  readonly #numbers: Numbers
  readonly #weights: Weights
  readonly #kinds: readonly Kind[]
  /** Kinds that have not come yet. */
  readonly #fresh: Kind[]

  constructor(track: Track, random: Random, numbers: Numbers) {
    this.#random = random
    this.#numbers = numbers
    this.#weights = weights[numbers.servers === 1 ? 'one' : 'several'][track]
    this.#kinds = kindsOf(numbers.servers, track)
    this.#fresh = random.shuffled(this.#kinds)
  }

  /** How many more servers are alive than a majority needs. */
  get spare(): number {
    return this.#numbers.alive - majorityOf(this.#numbers.servers)
  }

  /** Whether some kind has not come yet. */
  get hasNew(): boolean {
    return this.#fresh.length > 0
  }

  /** Returns the next faults, which begin at the same time. `group`: only faults of this group. */
  next(group?: Group): Planned[] {
    const { alive } = this.#numbers
    const kind = this.#draw(group)
    const majority = kind.group === 'servers' || kind.group === 'lines'
    const count = majority ? this.#random.int(alive - this.spare, alive) : this.#random.int(1, Math.max(1, this.spare))
    const servers = this.#random.shuffled(Array.from({ length: alive }, (_, i) => i))
    const all = servers.slice(0, count)
    if (kind.fault.target !== 'server') return [this.#planned(kind, servers[0]!, all)]
    return all.map((server, i) => this.#planned(majority || i === 0 ? kind : this.#draw('server'), server, all))
  }

  #draw(group?: Group): Kind {
    const fresh = this.#fresh.findIndex(kind => kind.group === (group ?? kind.group))
    if (fresh >= 0) return this.#fresh.splice(fresh, 1)[0]!
    const drawn = group ?? this.#random.weighted(this.#weights as Record<Group, number>)
    const kinds = this.#kinds.filter(kind => kind.group === drawn)
    const name = this.#random.weighted(Object.fromEntries(kinds.map(({ fault }) => [fault.name, fault.weight])))
    return kinds.find(({ fault }) => fault.name === name)!
  }

  #planned(kind: Kind, server: number, all: readonly number[]): Planned {
    const random = this.#random
    const { longest } = kind.fault
    return {
      name: nameOf(kind),
      fault: kind.fault,
      process: random.int(0, this.#numbers.processes - 1),
      server,
      key: random.int(0, this.#numbers.keys - 1),
      all,
      duration: longest === undefined ? 0 : random.int(SHORTEST, longest),
      dice: random.int(0, DICE - 1),
    }
  }
}

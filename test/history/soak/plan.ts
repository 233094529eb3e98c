/**
 * The plan of the faults: their order, their targets and their durations, all of which follow from the seed. Every kind
 * comes once, in random order, before any kind is repeated. After that, kinds are drawn by their weights.
 */
import type { Random } from '../../kit/random.ts'

/** Faults of one process or of its connections to the server, with their weights. */
const ofProcess = {
  kill: 6,
  freeze: 8,
  block: 5,
  'wall clock': 4,
  cut: 8,
  refuse: 5,
  'half-open up': 5,
  'half-open down': 6,
  partition: 4,
  hold: 5,
  delay: 4,
  'lose replies': 6,
  'late requests': 6,
  'drop messages': 6,
  'double messages': 5,
  'early messages': 5,
  'late messages': 5,
  'output buffer': 3,
} as const

/** Faults of the server, with their weights. They affect all processes. */
const ofServer = {
  'client kill normal': 3,
  'client kill pubsub': 4,
  'client kill both': 2,
  'script flush': 6,
  pause: 3,
  'pause writes': 2,
  sleep: 2,
  busy: 2,
  loading: 2,
  'out of memory': 3,
  readonly: 2,
  'no replicas': 2,
  misconf: 2,
  'scripts revoked': 2,
  'keys revoked': 1,
  'login revoked': 1,
  'publish revoked': 2,
  'subscribe revoked': 2,
  flushall: 2,
  evict: 2,
  'restart empty': 2,
  failover: 3,
  'clock forward': 3,
  'clock back': 3,
} as const

const ofKey = {
  delete: 5,
  'delete all': 3,
  'delete queue': 3,
  'force release': 8,
  'wrong type': 2,
  'wrong type of queue': 2,
  'forge messages': 5,
  'forge grants': 8,
} as const

export type ProcessFault = keyof typeof ofProcess
export type ServerFault = keyof typeof ofServer
export type KeyFault = keyof typeof ofKey
type Name = ProcessFault | ServerFault | KeyFault

interface Times {
  /** When the fault begins, in ms after the beginning of the storm. */
  readonly at: number
  readonly duration: number
  /** A random number from which the fault makes its other choices. */
  readonly dice: number
}

export type Planned = Times &
  (
    | { readonly scope: 'process'; readonly name: ProcessFault; readonly process: number }
    | { readonly scope: 'server'; readonly name: ServerFault }
    | { readonly scope: 'key'; readonly name: KeyFault; readonly key: number }
  )

/** The longest duration of each fault, in ms. */
const longest: Partial<Record<Name, number>> = {
  freeze: 4_500,
  block: 3_500,
  'wall clock': 2_500,
  refuse: 5_000,
  'half-open up': 4_000,
  'half-open down': 4_000,
  partition: 4_000,
  hold: 2_000,
  delay: 3_000,
  'late requests': 2_000,
  'drop messages': 3_000,
  'double messages': 3_000,
  'early messages': 1_000,
  'late messages': 2_500,
  'output buffer': 3_000,
  'lose replies': 100,
  pause: 1_500,
  'pause writes': 1_500,
  sleep: 1_200,
  busy: 1_000,
  loading: 1_500,
  'out of memory': 1_500,
  readonly: 1_000,
  'no replicas': 1_000,
  misconf: 1_000,
  'scripts revoked': 800,
  'keys revoked': 800,
  'login revoked': 800,
  'publish revoked': 1_000,
  'subscribe revoked': 800,
  'restart empty': 800,
  failover: 800,
  'clock back': 2_000,
  'wrong type': 600,
  'wrong type of queue': 600,
}

/** Extra time that a fault of the server needs, in ms. No other server fault begins in that time. */
const needed: Partial<Record<Name, number>> = {
  loading: 600,
  'restart empty': 300,
  failover: 1_500,
  'clock back': 1_300,
}

const SHORTEST = 50
const DICE = 1_000_000

export class Planner {
  readonly #random: Random
  readonly #processes: number
  readonly #keys: number
  /**
   * Kinds of faults that have not come yet. `#overlapping` are those that may overlap others, and `#successive` are
   * those that come one after another.
   */
  readonly #overlapping: ProcessFault[]
  readonly #successive: (ServerFault | KeyFault)[]

  constructor(random: Random, processes: number, keys: number) {
    this.#random = random
    this.#processes = processes
    this.#keys = keys
    this.#overlapping = random.shuffled(Object.keys(ofProcess) as ProcessFault[])
    this.#successive = random.shuffled([...Object.keys(ofServer), ...Object.keys(ofKey)] as (ServerFault | KeyFault)[])
  }

  /** Returns the faults of a storm of `length` ms, in the order of time. */
  storm(length: number): Planned[] {
    const random = this.#random
    const plan: Planned[] = []
    let free = 0
    for (let at = random.int(0, 300); at < length; ) {
      const first = this.#overlapping.length + this.#successive.length > 0
      const planned = first ? this.#notYet(at, at >= free) : this.#any(at)
      plan.push(planned)
      if (planned.scope !== 'process') free = at + planned.duration + (needed[planned.name] ?? 0)
      at += first && planned.scope !== 'process' ? random.int(30, 250) : random.int(50, 600)
    }
    return plan
  }

  #notYet(at: number, free: boolean): Planned {
    const name = free ? this.#successive.pop() : undefined
    if (name !== undefined)
      return name in ofKey ? this.#ofKey(at, name as KeyFault) : this.#ofServer(at, name as ServerFault)
    return this.#ofProcess(at, this.#overlapping.pop())
  }

  #any(at: number): Planned {
    const scope = this.#random.weighted({ process: 65, key: 23, server: 12 })
    if (scope === 'process') return this.#ofProcess(at)
    return scope === 'key' ? this.#ofKey(at) : this.#ofServer(at)
  }

  #ofProcess(at: number, name: ProcessFault = this.#random.weighted(ofProcess)): Planned {
    return { at, scope: 'process', name, process: this.#random.int(0, this.#processes - 1), ...this.#more(name) }
  }

  #ofServer(at: number, name: ServerFault = this.#random.weighted(ofServer)): Planned {
    return { at, scope: 'server', name, ...this.#more(name) }
  }

  #ofKey(at: number, name: KeyFault = this.#random.weighted(ofKey)): Planned {
    return { at, scope: 'key', name, key: this.#random.int(0, this.#keys - 1), ...this.#more(name) }
  }

  #more(name: Name): { duration: number; dice: number } {
    const most = longest[name]
    return {
      duration: most === undefined ? 0 : this.#random.int(SHORTEST, most),
      dice: this.#random.int(0, DICE - 1),
    }
  }
}

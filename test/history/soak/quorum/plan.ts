/**
 * The plan of the faults: their order, their targets and their durations, all of which follow from the seed. Every kind
 * comes once, in random order, before any kind is repeated. The first two storms and their calms have every kind.
 *
 * Faults of servers come in blows, one after another. There are three kinds of blow: a different fault for each server
 * of a minority, one fault for all servers of a majority, and steps of the servers' clocks. Calms have only blows
 * against minorities, and none at all if a minority is dead for the whole run. During a calm, every lock must make progress and no call may fail. Faults of processes and of
 * their connections may overlap all others, and come only in storms.
 */
import type { Random } from '../../../kit/random.ts'
import type { Choices } from '../fault.ts'
import { STANDING } from './terms.ts'

const ofWorker = { kill: 6, freeze: 8, block: 5, 'wall clock': 3 } as const

/** Faults of the connection between a process and a server, with their weights. */
const ofLine = {
  cut: 8,
  refuse: 5,
  partition: 5,
  'half-open up': 5,
  'half-open down': 5,
  delay: 6,
  hold: 6,
} as const

const ofServer = {
  restart: 6,
  'restart empty': 6,
  stop: 6,
  'client kill': 5,
  'cut off': 4,
  'cut off up': 4,
  'cut off down': 4,
  slow: 5,
  late: 4,
} as const

const ofClock = { 'clock ahead': 3, 'clock back': 3 } as const
const ofKey = { 'force release': 1 } as const

export type WorkerFault = keyof typeof ofWorker
export type LineFault = keyof typeof ofLine
export type ServerFault = keyof typeof ofServer
export type ClockFault = keyof typeof ofClock
export type KeyFault = keyof typeof ofKey

/** Only these faults may hit a majority of one process's connections at once. */
const linesOfMajority: readonly LineFault[] = ['cut', 'partition', 'hold']
/** Only these faults may hit a majority of the servers at once. */
const serversOfMajority: readonly ServerFault[] = ['restart', 'restart empty', 'stop', 'cut off']

export type Planned = Choices & { readonly at: number } & (
    | { readonly scope: 'worker'; readonly name: WorkerFault; readonly process: number }
    | {
        readonly scope: 'lines'
        readonly name: LineFault
        readonly process: number
        readonly servers: readonly number[]
        readonly majority: boolean
      }
    | {
        readonly scope: 'server'
        readonly name: ServerFault
        readonly server: number
        /** All servers that the blow affects. */
        readonly all: readonly number[]
        readonly blow: number
        readonly majority: boolean
      }
    | { readonly scope: 'clock'; readonly name: ClockFault; readonly server: number; readonly blow: number }
    | { readonly scope: 'key'; readonly name: KeyFault; readonly key: number }
  )

/** Returns the name of the fault in the history. */
export function nameOf(planned: Planned): string {
  const majority = 'majority' in planned && planned.majority
  const of = planned.scope === 'lines' ? `way: ${planned.name}` : planned.name
  return majority ? `${of}, of a majority` : of
}

export const faultNames: readonly string[] = [
  ...Object.keys(ofWorker),
  ...Object.keys(ofLine).map(name => `way: ${name}`),
  ...linesOfMajority.map(name => `way: ${name}, of a majority`),
  ...Object.keys(ofServer),
  ...serversOfMajority.map(name => `${name}, of a majority`),
  ...Object.keys(ofClock),
  ...Object.keys(ofKey),
]

/** The longest duration of each fault, in ms. A fault that is not listed has no duration. */
const longest: Partial<Record<Planned['name'], number>> = {
  freeze: 3_500,
  block: 2_500,
  'wall clock': 2_000,
  refuse: 3_000,
  partition: 3_000,
  'half-open up': 3_000,
  'half-open down': 3_000,
  delay: 3_000,
  hold: 2_000,
  restart: 1_500,
  'restart empty': 600,
  stop: 2_500,
  'cut off': 2_500,
  'cut off up': 2_500,
  'cut off down': 2_500,
  slow: 2_500,
  late: 2_000,
  'clock ahead': 600,
  'clock back': 1_200,
}
const SHORTEST = 50

/** The time that a fault takes in addition to its duration, in ms. */
const needed: Partial<Record<Planned['name'], number>> = {
  restart: 300,
  'restart empty': STANDING + 600,
  // The fault `clock ahead` takes long, because the clocks of the servers step one after another.
  'clock ahead': 3_500,
  'clock back': 100,
}
const DICE = 1_000_000
/** The first blow of a calm begins at most this many ms after the calm has begun. */
const SOON = 1_000
/** The last blow of a calm begins at least this many ms before the calm ends. */
const PEACE = 1_000

type Special = { readonly majority: ServerFault } | { readonly clock: ClockFault }
type Own = { readonly worker: WorkerFault } | { readonly lines: LineFault; readonly majority: boolean } | KeyFault

interface Numbers {
  readonly processes: number
  readonly keys: number
  readonly servers: number
  readonly spare: number
}

export class QuorumPlanner {
  readonly #random: Random
  readonly #processes: number
  readonly #keys: number
  readonly #servers: number
  /** How many more servers are alive than a majority needs. */
  readonly #spare: number
  /**
   * Kinds of faults that have not come yet: those of processes, those of a minority of the servers, and those of a
   * majority or of a clock.
   */
  readonly #own: Own[]
  #minor: ServerFault[]
  readonly #special: Special[]
  #blows = 0

  constructor(random: Random, { processes, keys, servers, spare }: Numbers) {
    this.#random = random
    this.#processes = processes
    this.#keys = keys
    this.#servers = servers
    this.#spare = spare
    this.#own = random.shuffled<Own>([
      ...names(ofWorker).map(worker => ({ worker })),
      ...names(ofLine).map(lines => ({ lines, majority: false })),
      ...linesOfMajority.map(lines => ({ lines, majority: true })),
      ...names(ofKey),
    ])
    this.#minor = random.shuffled(names(ofServer))
    this.#special = random.shuffled<Special>([
      ...serversOfMajority.map(majority => ({ majority })),
      ...names(ofClock).map(clock => ({ clock })),
    ])
  }

  /** Returns the faults of a storm of `length` ms, in the order of time. */
  storm(length: number): Planned[] {
    const random = this.#random
    const blows: Planned[] = []
    for (let at = random.int(0, 300); at < length; ) {
      const blow = this.#blow(at)
      blows.push(...blow)
      at = Math.max(...blow.map(overAt)) + random.int(50, 500)
    }
    const others: Planned[] = []
    for (let at = random.int(0, 300); at < length; at += random.int(100, 900)) others.push(this.#ofProcess(at))
    return [...blows, ...others].sort((a, b) => a.at - b.at)
  }

  /** Returns the faults of a calm of `length` ms. */
  calm(length: number): Planned[] {
    const plan: Planned[] = []
    for (let at = this.#random.int(0, SOON); this.#spare > 0 && at < length - PEACE; ) {
      const blow = this.#minority(at)
      plan.push(...blow)
      at = Math.max(...blow.map(overAt)) + this.#random.int(200, SOON)
    }
    return plan
  }

  #blow(at: number): Planned[] {
    const special = this.#special.pop()
    if (special) return 'clock' in special ? this.#ofClock(at, special.clock) : this.#majority(at, special.majority)
    const what = this.#minor.length > 0 ? 'minority' : this.#random.weighted({ minority: 6, majority: 2, clock: 1 })
    if (what === 'minority') return this.#minority(at)
    if (what === 'majority') return this.#majority(at, this.#random.pick(serversOfMajority))
    return this.#ofClock(at, this.#random.weighted(ofClock))
  }

  #minority(at: number): Planned[] {
    const random = this.#random
    const most = Math.max(1, this.#spare)
    const all = this.#some(this.#minor.length > 0 ? most : random.int(1, most))
    const blow = ++this.#blows
    return all.map(server => {
      const name = this.#minor.pop() ?? random.weighted(ofServer)
      return { at, scope: 'server', name, server, all, blow, majority: false, ...this.#choices(name) }
    })
  }

  #majority(at: number, name: ServerFault): Planned[] {
    const all = this.#some(this.#random.int(this.#servers - this.#spare, this.#servers))
    const blow = ++this.#blows
    return all.map(server => ({
      ...{ at, scope: 'server', name, server, all, blow, majority: true },
      ...this.#choices(name),
    }))
  }

  #ofClock(at: number, name: ClockFault): Planned[] {
    const server = this.#random.int(0, this.#servers - 1)
    return [{ at, scope: 'clock', name, server, blow: ++this.#blows, ...this.#choices(name) }]
  }

  #ofProcess(at: number): Planned {
    const random = this.#random
    const own = this.#own.pop() ?? this.#any()
    if (own === 'force release') {
      return { at, scope: 'key', name: own, key: random.int(0, this.#keys - 1), ...this.#choices(own) }
    }
    const process = random.int(0, this.#processes - 1)
    if ('worker' in own) return { at, scope: 'worker', name: own.worker, process, ...this.#choices(own.worker) }
    const { lines: name, majority } = own
    const least = majority ? this.#servers - this.#spare : 1
    const most = majority ? this.#servers : Math.max(1, this.#spare)
    const servers = this.#some(random.int(least, most))
    return { at, scope: 'lines', name, process, servers, majority, ...this.#choices(name) }
  }

  #any(): Own {
    const random = this.#random
    const scope = random.weighted({ worker: 25, minority: 40, majority: 10, key: 25 })
    if (scope === 'worker') return { worker: random.weighted(ofWorker) }
    if (scope === 'key') return random.weighted(ofKey)
    if (scope === 'minority') return { lines: random.weighted(ofLine), majority: false }
    return { lines: random.pick(linesOfMajority), majority: true }
  }

  #some(count: number): number[] {
    const all = Array.from({ length: this.#servers }, (_, i) => i)
    return this.#random.shuffled(all).slice(0, count)
  }

  #choices(name: Planned['name']): Choices {
    const most = longest[name]
    return {
      duration: most === undefined ? 0 : this.#random.int(SHORTEST, most),
      dice: this.#random.int(0, DICE - 1),
    }
  }
}

function overAt({ at, duration, name }: Planned): number {
  return at + duration + (needed[name] ?? 0)
}

function names<N extends string>(weights: Readonly<Record<N, number>>): N[] {
  return Object.keys(weights) as N[]
}

/** Which fault comes when, to whom and for how long: all of it follows from the seed. */
import type { Random } from './random.ts'
import { STORM } from './terms.ts'

/** Faults of one process or of the way between it and the server. */
const ofProcess = {
  kill: 6,
  freeze: 8,
  block: 5,
  cut: 8,
  refuse: 5,
  'half-open up': 5,
  'half-open down': 6,
  hold: 5,
  delay: 4,
  'lose replies': 6,
  'drop messages': 6,
  'double messages': 5,
} as const

/** Faults of the server, felt by all. */
const ofServer = {
  'client kill normal': 3,
  'client kill pubsub': 4,
  'script flush': 6,
  pause: 3,
  sleep: 2,
  busy: 2,
  'out of memory': 3,
  readonly: 2,
  'no replicas': 2,
  'rights revoked': 2,
  flushall: 2,
  'restart empty': 2,
} as const

/** Faults of one lock. */
const ofKey = { delete: 5, 'force release': 8, 'wrong type': 2, 'forge messages': 8 } as const

export type ProcessFault = keyof typeof ofProcess
export type ServerFault = keyof typeof ofServer
export type KeyFault = keyof typeof ofKey

interface Times {
  /** ms after the beginning of the storm. */
  readonly at: number
  readonly duration: number
}

export type Planned = Times &
  (
    | { readonly scope: 'process'; readonly name: ProcessFault; readonly process: number }
    | { readonly scope: 'server'; readonly name: ServerFault }
    | { readonly scope: 'key'; readonly name: KeyFault; readonly key: number }
  )

/** Longer than the longest lease at times, and shorter than what the server needs to notice at others. */
const longest: Partial<Record<ProcessFault | ServerFault | KeyFault, number>> = {
  freeze: 4_500,
  block: 3_500,
  refuse: 5_000,
  'half-open up': 4_000,
  'half-open down': 4_000,
  hold: 2_000,
  delay: 3_000,
  'drop messages': 3_000,
  'double messages': 3_000,
  'lose replies': 100,
  pause: 1_500,
  sleep: 1_200,
  busy: 1_000,
  'out of memory': 1_500,
  readonly: 1_000,
  'no replicas': 1_000,
  'rights revoked': 800,
  'restart empty': 800,
  'wrong type': 600,
}

const SHORTEST = 50

/** The faults of one storm, by their time. */
export function planStorm(random: Random, processes: number, keys: number): Planned[] {
  const plan: Planned[] = []
  for (let at = random.int(0, 300); at < STORM; at += random.int(50, 600)) {
    const scope = random.weighted({ process: 65, key: 23, server: 12 })
    if (scope === 'process') {
      const name = random.weighted(ofProcess)
      plan.push({ at, scope, name, process: random.int(0, processes - 1), duration: duration(random, name) })
    } else if (scope === 'server') {
      const name = random.weighted(ofServer)
      plan.push({ at, scope, name, duration: duration(random, name) })
    } else {
      const name = random.weighted(ofKey)
      plan.push({ at, scope, name, key: random.int(0, keys - 1), duration: duration(random, name) })
    }
  }
  return plan
}

function duration(random: Random, name: keyof typeof longest): number {
  const most = longest[name]
  return most === undefined ? 0 : random.int(SHORTEST, most)
}

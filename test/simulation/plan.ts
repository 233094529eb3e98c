/**
 * The plan of one history, drawn from its seed. There are few clients and keys, so that they contend. Each history has
 * only some of the kinds of fault, so that each kind occurs both alone and together with others. Times are short, so
 * that everything happens often.
 *
 * Some histories are crowds: each of a few clients has many callers, which ask for locks at the same moments. Nearly
 * all of these calls are unfair, and hold the lock for hardly any time. So the clients often hand locks off locally.
 */
import { type CallTerms, callTermsOf, type Settings, settingsOf } from '../../src/options.ts'
import { Random } from '../kit/random.ts'
import type { Weather } from './network.ts'

export const faultKinds = [
  'cut',
  'stall',
  'partition',
  'freeze',
  'crash',
  'close',
  'dataLoss',
  'serverDown',
  'serverPause',
  'refusal',
  'messages',
  'noScript',
  'noise',
  'force',
] as const
export type FaultKind = (typeof faultKinds)[number]

export type SimulatedKind = 'mutex' | 'semaphore' | 'readWrite'

/**
 * Faults that lose no data of the server and break no connection, except the connections of a client that crashes or is
 * closed.
 */
const harmless: readonly FaultKind[] = ['close', 'crash', 'force', 'noise', 'noScript', 'refusal']

/**
 * Faults after which a live waiter may lose its place in the queue for a while, so that a later waiter is served first.
 */
const disorderly: readonly FaultKind[] = [
  'cut',
  'stall',
  'partition',
  'freeze',
  'dataLoss',
  'serverDown',
  'serverPause',
  'refusal',
  'messages',
]

/** The permits that a writer and a reader want (src/kinds/permits/read-write.ts). */
export const WRITES = '1000000000/1000000000'
export const READS = '1/999999999'

/**
 * The number of a random stream. The choices that turn a plan for mutexes into a plan for another kind of lock come
 * from this stream. All other choices come from streams with smaller numbers (world.ts).
 */
const LAST_STREAM = 100

export interface Call {
  readonly at: number
  readonly client: number
  readonly key: string
  readonly request: Omit<CallTerms, 'signal'>
  /** How many ms after the call the caller aborts it. */
  readonly abort: number | undefined
  /** How many ms the lock is held; undefined: it is released in the turn of the event loop in which it was granted. */
  readonly hold: number | undefined
  readonly ending: 'release' | 'twice' | 'never'
  /** In the middle of the hold, `lease.renew` is called with this many ms; undefined: it is not called. */
  readonly renew: number | undefined
  /** A second call for the same lock, which the owner makes while it holds the lock. */
  readonly nested: Nested | undefined
}

export interface Nested {
  readonly how: 'once' | 'line' | 'queue'
  /** What the nested call wants, for example `READS`. */
  readonly wants: string | undefined
  /** The lease of the nested call, which is not renewed then; undefined: the lease of the outer call. */
  readonly lease: number | undefined
  /** How many ms the nested hold lasts, possibly longer than the outer hold; undefined: it is released at once. */
  readonly hold: number | undefined
}

export interface Fault {
  readonly at: number
  readonly kind: FaultKind
  readonly client: number
  /** How many ms the fault lasts, if its kind has a duration. */
  readonly ms: number
  readonly variant: number
  readonly key: string
}

export interface Plan {
  readonly kind: SimulatedKind
  readonly clients: number
  readonly keys: readonly string[]
  readonly settings: Settings
  readonly weather: Weather
  readonly kinds: ReadonlySet<FaultKind>
  readonly calls: readonly Call[]
  readonly faults: readonly Fault[]
  /** The time, in ms, at which the faults end. No call of `calls` begins after it. */
  readonly healed: number
  /** From this time on, a free lock must be taken within `bound` ms. */
  readonly calm: number
  readonly bound: number
  /** Within this many ms, the next holder must take a released lock; Infinity if messages or connections may fail. */
  readonly prompt: number
  /**
   * From this time on, no connection fails. If a client no longer wants a hold or a queue place, the server must have
   * removed it within `forgotten` ms.
   */
  readonly tidyFrom: number
  readonly forgotten: number
  /** The time by which every call must have settled and every lease must have ended. */
  readonly end: number
  /**
   * Whether no live waiter ever loses its place in the queue. If so, waiters are granted the lock in the order of their
   * first tickets.
   */
  readonly orderly: boolean
}

export function planOf(seed: number, kind: SimulatedKind): Plan {
  const plan = planOfMutex(seed)
  if (kind === 'mutex') return plan
  const random = new Random(seed, LAST_STREAM)
  return kind === 'semaphore' ? withPermits(plan, random) : withModes(plan, random)
}

/**
 * Turns a plan for mutexes into one for read-write locks. A hold may be nested in another hold of its owner, and may
 * outlive that hold.
 */
function withModes(plan: Plan, random: Random): Plan {
  const writers = random.pick([0.1, 0.3, 0.7])
  const mode = () => (random.chance(writers) ? WRITES : READS)
  const calls = plan.calls.map(call => {
    const nests = random.chance(0.2)
    const how = call.nested?.how ?? random.pick(['once', 'line', 'queue'] as const)
    const hold = random.pick([undefined, 0, 1, 10, 100])
    const nested: Nested = { how, wants: mode(), lease: random.pick([undefined, undefined, 40]), hold }
    return { ...call, request: { ...call.request, wants: mode() }, nested: nests ? nested : undefined }
  })
  return { ...plan, kind: 'readWrite', calls }
}

/**
 * Turns a plan for mutexes into one for semaphores. Each call wants some permits. In some histories, the calls disagree
 * about how many permits the semaphore has: they state two different numbers.
 */
function withPermits(plan: Plan, random: Random): Plan {
  const of = random.int(1, 5)
  const numbers = random.chance(0.2) ? [of, of + 1] : [of]
  const small = random.chance(0.5)
  const calls = plan.calls.map(call => {
    const number = random.pick(numbers)
    const permits = small && random.chance(0.7) ? 1 : random.int(1, number)
    return { ...call, request: { ...call.request, wants: `${permits}/${number}` }, nested: undefined }
  })
  return { ...plan, kind: 'semaphore', calls }
}

function planOfMutex(seed: number): Plan {
  const random = new Random(seed, 0)
  // Whether most calls of the history have one of two owners. Calls of one owner meet often in such a history, and
  // rarely in the others. If so, the history has no faults, because its calls are checked for promises that redis-baton
  // keeps only without faults. At most, messages are lost: then a call must re-enter by the next heartbeat.
  const family = random.chance(0.1)
  // Among the histories whose calls have many owners, some have no faults either. In these histories, the promises
  // that redis-baton keeps only without faults can be checked, too.
  const often = family || random.chance(0.2) ? 0 : 0.25
  const kinds = new Set(faultKinds.filter(kind => random.chance(family && kind === 'messages' ? 0.3 : often)))
  const clients = random.int(2, 4)
  const keys = random.chance(0.7) ? ['k'] : ['k', 'l']
  const lease = random.pick([60, 300, 1_000, 3_000])
  const settings = settingsOf({
    lease,
    waiterTtl: random.pick([300, 900, 3_000]),
    outageTimeout: random.pick([600, 2_000, 5_000]),
    tokenMemory: random.pick([1_000, 60_000]),
    label: 'sim',
  })
  const most = random.pick([0.3, 3, 20])
  const spike = random.pick([20, 400])
  const delay = { least: 0.05, most, spike, spikes: random.pick([0, 0.01, 0.05]) }
  const worst = delay.spikes > 0 ? most + spike : most
  // Whether every answer is so fast that no client believes its connection to be dead.
  const steady = 2 * worst < Math.max(100, settings.outageTimeout / 3)
  const healed = random.pick([600, 2_000, 5_000])
  const crowd = random.chance(0.4)
  const calls = crowd ? random.int(8, 60) : random.int(2, 24)
  const answerLimit = Math.min(5_000, Math.max(1_000, settings.outageTimeout / 3))
  // A grant may have to wait for the waiter's next heartbeat, and then for a few round trips.
  const bound = settings.waiterTtl / 3 + 10 * worst + 50
  const quiet = kinds.size === 0 || (kinds.size === 1 && kinds.has('messages'))
  const grace = quiet ? 0 : 2 * answerLimit + 2_500 + 2 * Math.max(500, settings.waiterTtl / 3)
  const faultCount = kinds.size === 0 ? 0 : random.int(1, 10)
  return {
    kind: 'mutex',
    clients,
    keys,
    settings,
    kinds,
    healed,
    calm: quiet ? 0 : healed + grace,
    bound,
    end: healed + grace + (calls + 1) * (lease * 2 + 1_000 + bound) + settings.outageTimeout,
    prompt: !steady || [...kinds].some(kind => kind !== 'noScript') ? Number.POSITIVE_INFINITY : 10 * worst + 50,
    tidyFrom: !steady
      ? Number.POSITIVE_INFINITY
      : [...kinds].every(kind => harmless.includes(kind))
        ? 0
        : healed + grace,
    // After a refusal, a client pauses its cleanup for a second.
    forgotten: 10 * worst + (kinds.has('refusal') ? 1_300 : 200),
    orderly: steady && !disorderly.some(kind => kinds.has(kind)) && settings.waiterTtl / 2 > 4 * worst,
    weather: {
      delay,
      messageLoss: kinds.has('messages') ? random.pick([0, 0.2, 1]) : 0,
      messageEcho: kinds.has('messages') ? random.pick([0, 0.3]) : 0,
      messageLate: kinds.has('messages') ? random.pick([0, 0.3, 0.7]) : 0,
      noScript: kinds.has('noScript') ? 0.2 : 0,
      refusal: undefined,
      unreachable: new Map(),
    },
    calls: Array.from({ length: calls }, () => callOf(random, clients, keys, healed, settings, crowd, family)),
    faults: Array.from({ length: faultCount }, () => ({
      at: random.between(20, healed),
      kind: random.pick([...kinds]),
      client: random.int(0, clients - 1),
      ms: random.pick([1, 10, 100, lease, 2 * lease, settings.waiterTtl, 1.3 * settings.outageTimeout]),
      variant: random.int(0, 5),
      key: random.pick(keys),
    })),
  }
}

function callOf(
  random: Random,
  clients: number,
  keys: readonly string[],
  until: number,
  settings: Settings,
  crowd: boolean,
  family: boolean,
): Call {
  const fair = random.chance(crowd ? 0.05 : 0.5)
  const fixed = random.chance(crowd ? 0.1 : 0.3)
  const queues = fair || random.chance(crowd ? 0.03 : 0.2)
  const options = {
    fair,
    fairAfter: !fair && queues ? random.int(0, 300) : Number.POSITIVE_INFINITY,
    headStart: queues && random.chance(0.1) ? random.int(1, 500) : undefined,
    lease: fixed ? random.pick([40, 150, 1_000]) : undefined,
    maxHold: !fixed && random.chance(0.1) ? random.int(1, 500) : undefined,
    timeout: random.pick([undefined, undefined, undefined, 0, 1, 30, 200, 1_500]),
    owner: random.chance(family ? 0.8 : crowd ? 0.1 : 0.2) ? random.pick(['x', 'y']) : undefined,
  }
  const { signal, ...request } = callTermsOf(options, settings)
  const endless = !fixed && options.maxHold === undefined
  const ending = random.pick(['release', 'release', 'twice', endless ? 'release' : 'never'] as const)
  const short = crowd && !family && random.chance(0.9)
  return {
    // Several calls often come at about the same moment.
    at: random.chance(crowd ? 0.1 : 0.5)
      ? random.between(1, until)
      : random.int(0, 3) * (until / 4) + random.between(1, 3),
    client: random.int(0, clients - 1),
    key: random.pick(keys),
    request,
    abort: random.chance(0.15) ? random.pick([0, 1, 20, random.int(1, 400)]) : undefined,
    hold: short
      ? random.pick([undefined, undefined, 0, 0.5, 2])
      : random.pick([0, 0, 1, 10, 50, random.int(1, 400), random.int(1, 2 * settings.lease)]),
    ending: short && random.chance(0.8) ? 'release' : ending,
    renew: random.chance(0.15) ? random.pick([20, 500, 2_000]) : undefined,
    nested: random.chance(0.1)
      ? { how: random.pick(['once', 'line', 'queue'] as const), wants: undefined, lease: undefined, hold: undefined }
      : undefined,
  }
}

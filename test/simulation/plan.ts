/**
 * The plan of one history, drawn from its seed. There are few clients and keys, so that they contend. Each history has
 * only some of the kinds of fault, so that each kind occurs both alone and together with others. Times are short, so
 * that everything happens often.
 *
 * Some histories are crowds: each of a few clients has many callers, which ask for locks at the same moments. Nearly
 * all of these calls are unfair, and hold the lock for hardly any time. So the clients often hand locks off locally.
 */
import { type CallTerms, callTermsOf, type Settings, settingsOf } from '../../src/settings.ts'
import { Random } from '../kit/random.ts'
import type { Weather } from './network.ts'

const faultKinds = [
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
/** Servers restart only in a quorum. On one server, `dataLoss` has the same effect. */
export type FaultKind = (typeof faultKinds)[number] | 'restart'

/** A `quorum` is a mutex over three or five servers. */
export type SimulatedKind = 'mutex' | 'semaphore' | 'readWrite' | 'quorum'

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
/** The stream of later additions. With it, the histories of the seeds in simulation.test.ts still find their faults. */
const NEW_STREAM = 113

/** In some histories of a quorum, holders renew for this many ms, which is more than any lease. */
const LONG_RENEWAL = 8_000

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
  /**
   * When the holder renews, another client has begun to release the lock by force this many ms before; undefined: it
   * has not.
   */
  readonly contested?: number | undefined
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
  /** The numbers of the servers that the fault hits, from 0. */
  readonly servers: readonly number[]
}

export interface Plan {
  readonly kind: SimulatedKind
  readonly clients: number
  readonly keys: readonly string[]
  readonly settings: Settings
  /** For each server, the faults of the way to it that last for the whole history. */
  readonly weathers: readonly Weather[]
  /** Whether a server that restarts still has its data. */
  readonly persists: boolean
  /** Whether the second address leads to the same machine as the first: to its replica, which has the same data. */
  readonly replica: boolean
  /** The servers that die. */
  readonly dead: { readonly servers: readonly number[]; readonly at: number; readonly how: 'refused' | 'silent' }
  readonly kinds: ReadonlySet<FaultKind>
  readonly calls: readonly Call[]
  readonly faults: readonly Fault[]
  /** The time, in ms, at which the faults end. No call of `calls` begins after it. */
  readonly healed: number
  /**
   * Whether every answer is so fast that no client believes its connection to be dead. Otherwise a call may fail even
   * without faults.
   */
  readonly steady: boolean
  /**
   * By how many ms a call may exceed `outageTimeout`. When a majority of a quorum has failed by then, the other servers
   * have up to three times as long; and a second is left for late requests.
   */
  readonly slack: number
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
  const mutexes = planOfMutex(seed)
  const random = new Random(seed, LAST_STREAM)
  const additions = new Random(seed, NEW_STREAM)
  if (kind === 'quorum') return withServers(withMinHolds(mutexes, additions), random)
  const plan = withFullQueues(withMinHolds(mutexes, random), additions)
  if (kind === 'mutex') return plan
  return kind === 'semaphore' ? withPermits(plan, random) : withModes(plan, random)
}

/**
 * What the histories of a quorum are about: which faults happen, and what most of the calls do. The story of a known
 * fault needs several rare events, and by pure chance they would hardly ever meet.
 */
const themes: readonly Theme[] = [
  { count: 10 },
  { count: 0, kinds: [], most: 'queue' },
  { count: 40, kinds: ['serverPause', 'stall'], most: 'nest' },
  { count: 20, kinds: ['restart', 'serverDown', 'freeze'], most: 'renew' },
  { count: 20, kinds: ['force', 'partition', 'serverPause'], most: 'renew' },
  { count: 10, kinds: ['refusal', 'refusal', 'serverDown'] },
  { count: 20, kinds: ['restart', 'serverDown', 'cut'], replica: true },
]

interface Theme {
  /** How many faults happen, at most. */
  readonly count: number
  /** The kinds of faults; undefined: those of the plan. */
  readonly kinds?: readonly FaultKind[]
  readonly most?: 'nest' | 'renew' | 'queue'
  readonly replica?: boolean
}

/**
 * Turns a plan for mutexes into one for a quorum. Most faults hit a minority of the servers. In many histories a
 * minority is dead or slow all the time, so that each vote of the others counts. No data is lost without a restart,
 * because nothing reports that to a quorum.
 */
function withServers(plan: Plan, random: Random): Plan {
  const count = random.pick([3, 3, 5])
  const minority = (count - 1) / 2
  const some = (most: number) => random.shuffled([...Array(count).keys()]).slice(0, random.int(1, most))
  const theme = random.pick(themes)
  const { kinds = [...plan.kinds], most, replica = false } = theme
  const [weather] = plan.weathers as [Weather]
  const slow = random.chance(0.5) ? some(minority) : []
  const dies = !replica && random.chance(kinds.length === 0 ? 0.8 : 0.3)
  const how = random.pick(['refused', 'silent'] as const)
  const healed = most === 'renew' ? 10_000 : plan.healed
  const dead = { servers: dies ? some(minority) : [], at: random.pick([0, random.between(0, healed)]), how }
  const far = random.pick([30, 100])
  // A lease that is shorter than a few round trips seldom gets the votes of a majority before the first of them lapses.
  const { delay } = weather
  const worst = delay.most + (delay.spikes > 0 ? delay.spike : 0) + (slow.length > 0 ? far : 0)
  const long = (lease: number) => Math.ceil(Math.max(lease, 8 * worst))
  const contests = kinds.includes('force')
  const longest = most === 'renew' ? LONG_RENEWAL : 0
  const chance = (of: typeof most, otherwise: number) => random.chance(most === of ? 0.7 : otherwise)
  const calls = plan.calls.map((call): Call => {
    const request = { ...call.request, lease: long(call.request.lease) }
    if (chance('queue', 0) || chance('nest', 0))
      Object.assign(request, { fair: true, fairAfter: undefined, owner: undefined })
    const nested: Nested = {
      how: random.pick(['once', 'line']),
      wants: undefined,
      lease: undefined,
      hold: random.pick([undefined, 0, 10]),
    }
    const contested = contests ? random.between(0, 4 * worst) : undefined
    const renewal = { contested, renew: longest, hold: random.between(50, longest), ending: 'release' as const }
    return {
      ...call,
      request,
      ...(most === 'renew' && { at: random.between(1, healed) }),
      ...(chance('renew', 0) && {
        ...renewal,
        request: { ...request, renew: random.chance(0.5), maxHold: Number.POSITIVE_INFINITY },
      }),
      nested: chance('nest', 0.1) ? nested : call.nested,
    }
  })
  // The servers have to know the longest lease that any call asks for.
  const asked = calls.flatMap(({ request, renew = 0 }) => [request.lease, renew])
  const lease = Math.max(longest, long(plan.settings.lease), ...asked)
  const young = Math.max(1_000, lease) * 1.01 + 2_000
  const grace = kinds.length > 0 ? plan.bound + 10_000 + young : 0
  const kindOf = (kind: FaultKind) => (kind === 'dataLoss' ? 'restart' : kind)
  const struck: readonly Fault[] =
    kinds.length === 0
      ? []
      : Array.from({ length: random.int(1, theme.count) }, () => ({
          at: random.between(20, healed),
          kind: kindOf(random.pick(kinds)),
          client: random.int(0, plan.clients - 1),
          ms: random.pick([10, 100, 400, plan.settings.lease, 2_000, 1.3 * plan.settings.outageTimeout]),
          variant: random.int(0, 5),
          key: random.pick(plan.keys),
          servers: some(random.chance(0.5) ? minority : count),
        }))
  return {
    ...plan,
    kind: 'quorum',
    settings: { ...plan.settings, lease },
    weathers: Array.from({ length: count }, (_, i) => ({
      ...weather,
      lingers: 900,
      unreachable: new Map(),
      delay: slow.includes(i) ? { ...delay, most: delay.most + far } : delay,
    })),
    persists: random.chance(0.3),
    replica,
    dead,
    calls,
    faults: struck,
    kinds: new Set(kinds.map(kindOf)),
    healed,
    steady: 2 * worst < Math.max(100, plan.settings.outageTimeout / 3),
    slack: 3 * plan.settings.outageTimeout + 1_200,
    calm: kinds.length > 0 ? healed + grace : 0,
    bound: plan.bound + 10 * worst + 2_000,
    end: healed + grace + (plan.calls.length + 1) * (3_000 + longest + plan.bound + 20 * worst),
    prompt: Number.POSITIVE_INFINITY,
    tidyFrom: Number.POSITIVE_INFINITY,
    orderly: false,
  }
}

/** In some histories, some calls have a `minHold`. */
function withMinHolds(plan: Plan, random: Random): Plan {
  if (random.chance(0.7)) return plan
  const calls = plan.calls.map(call => {
    const minHold = random.pick([undefined, undefined, 20, 200, 1_000])
    return { ...call, request: { ...call.request, minHold } }
  })
  return { ...plan, calls }
}

/** In a few histories, some calls join the queue only while it is short. */
function withFullQueues(plan: Plan, random: Random): Plan {
  if (random.chance(0.85)) return plan
  const calls = plan.calls.map(call => {
    const maxWaiters = random.pick([undefined, 0, 1, 3])
    return { ...call, request: { ...call.request, maxWaiters } }
  })
  return { ...plan, calls }
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
 * about how many permits the semaphore has: they state two different numbers. In half of the histories, some calls have
 * groups, with limits and weights, and some of them disagree about these, too.
 */
function withPermits(plan: Plan, random: Random): Plan {
  const of = random.int(1, 5)
  const numbers = random.chance(0.2) ? [of, of + 1] : [of]
  const small = random.chance(0.5)
  const grouped = random.chance(0.5) ? random.pick([0.3, 1]) : 0
  const numbered = random.pick([0, 0.5, 1])
  const limits = [undefined, random.int(1, of), random.int(1, of)]
  const calls = plan.calls.map(call => {
    const number = random.pick(numbers)
    const permits = small && random.chance(0.7) ? 1 : random.int(1, number)
    const wants = `${permits}/${number}${random.chance(numbered) ? 's' : ''}`
    if (!random.chance(grouped)) return { ...call, request: { ...call.request, wants }, nested: undefined }
    const group = random.int(0, 2)
    const limit = random.chance(0.9) ? limits[group] : random.int(1, of)
    const terms = `${limit === undefined ? '' : Math.max(limit, permits)};${random.pick(['', '', 2, 0.5])};g${group}`
    const fair = { fair: true, fairAfter: undefined }
    return { ...call, request: { ...call.request, ...fair, wants: `${wants};${terms}` }, nested: undefined }
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
  const kinds = new Set<FaultKind>(
    faultKinds.filter(kind => random.chance(family && kind === 'messages' ? 0.3 : often)),
  )
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
    steady,
    slack: 0,
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
    weathers: [
      {
        delay,
        messageLoss: kinds.has('messages') ? random.pick([0, 0.2, 1]) : 0,
        messageEcho: kinds.has('messages') ? random.pick([0, 0.3]) : 0,
        messageLate: kinds.has('messages') ? random.pick([0, 0.3, 0.7]) : 0,
        noScript: kinds.has('noScript') ? 0.2 : 0,
        refusal: undefined,
        unreachable: new Map(),
        lingers: 1_500,
      },
    ],
    persists: true,
    replica: false,
    dead: { servers: [], at: 0, how: 'refused' },
    calls: Array.from({ length: calls }, () => callOf(random, clients, keys, healed, settings, crowd, family)),
    faults: Array.from({ length: faultCount }, () => ({
      at: random.between(20, healed),
      kind: random.pick([...kinds]),
      client: random.int(0, clients - 1),
      ms: random.pick([1, 10, 100, lease, 2 * lease, settings.waiterTtl, 1.3 * settings.outageTimeout]),
      variant: random.int(0, 5),
      key: random.pick(keys),
      servers: [0],
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

/**
 * Simulates correct locks, and returns their histories. The tests check these histories unchanged and after a mutation.
 * The server serves fair waiters by the rules of the lock's kind, and other waiters in any order that the lock allows.
 */
import fc from 'fast-check'
import type { Entry, Fields, HistoryEvent, Kind } from './events.ts'
import { type Wants, weightOf } from './wants.ts'

export type LockKind = 'mutex' | 'semaphore' | 'readWrite'

export interface Call {
  readonly key: number
  readonly worker: number
  /** The time since the previous call, in ms. */
  readonly after: number
  readonly fair: boolean
  readonly lease: number
  readonly hold: number
  readonly patience: number | undefined
  /**
   * For a semaphore: the requested permits, and the semaphore's number of permits, as this caller states it. Callers
   * may state different numbers.
   */
  readonly permits: readonly [permits: number, of: number]
  /** For a read-write lock: whether the call reads. */
  readonly reads: boolean
}

export const calls: fc.Arbitrary<Call[]> = fc.array(
  fc.record({
    key: fc.nat({ max: 2 }),
    worker: fc.nat({ max: 3 }),
    after: fc.double({ min: 0.01, max: 30, noNaN: true }),
    fair: fc.boolean(),
    lease: fc.integer({ min: 50, max: 300 }),
    hold: fc.double({ min: 0.1, max: 400, noNaN: true }),
    patience: fc.option(fc.integer({ min: 5, max: 2000 }), { nil: undefined }),
    permits: fc.constantFrom([1, 3], [1, 3], [2, 3], [3, 3], [1, 4], [4, 4]) as fc.Arbitrary<[number, number]>,
    reads: fc.constantFrom(true, true, false),
  }),
  { minLength: 1, maxLength: 60 },
)

interface Request extends Call {
  readonly name: string
  readonly t: number
  readonly wants: Wants | undefined
}

interface Live {
  readonly request: Request
  /** The time from which the server may grant the permits of this hold to others. */
  readonly until: number
}

/** The time of day, in ms, when the monotonic clock shows 0. */
export const WALL = 1_800_000_000_000
/** The time that data takes in one direction between a process and the server, in ms. */
const WAY = 0.1

export class Simulated {
  readonly events: HistoryEvent[] = []
  readonly #kind: LockKind
  readonly #writes = new Map<string, [token: number, id: string][]>()

  private constructor(kind: LockKind) {
    this.#kind = kind
  }

  /** Simulates these calls. All locks are of one kind. */
  static of(list: readonly Call[], kind: LockKind = 'mutex'): Simulated {
    const history = new Simulated(kind)
    history.#run(list)
    return history
  }

  add<K extends Kind>(t: number, kind: K, fields: Fields<K>): void {
    this.events.push({ t, kind, ...fields } as HistoryEvent)
  }

  #run(list: readonly Call[]): void {
    this.add(0, 'run', { seed: 0, waiterTtl: 3_000, longestLease: 300, outageTimeout: 4_000 })
    this.add(0, 'clock', { wall: WALL })
    this.add(0, 'calm', {})
    let t = 10
    const requests = list.map((call, i) => {
      t += call.after
      return { ...call, name: `a${i}`, t, wants: this.#wants(call) }
    })
    const ends = [0, 1, 2].map(key => this.#serve(requests.filter(request => request.key === key)))
    const end = Math.max(t, ...ends)
    this.add(end + 1, 'healed', { bound: 500 })
    for (const [key, entries] of this.#writes) this.add(end + 2, 'register', { key, entries })
    for (const worker of [0, 1, 2, 3]) this.add(end + 3, 'exited', { worker: `w${worker}`, forced: false })
    this.add(end + 4, 'left', { names: [] })
    this.events.sort((a, b) => a.t - b.t)
  }

  #wants({ permits, reads }: Call): Wants | undefined {
    if (this.#kind === 'mutex') return undefined
    return this.#kind === 'semaphore' ? permits : reads ? 'read' : 'write'
  }

  /** Simulates one key. Returns the time of its last event. */
  #serve(requests: readonly Request[]): number {
    for (const request of requests) this.#request(request)
    const coming = [...requests]
    let waiting: Request[] = []
    let live: Live[] = []
    let writersTurn = false
    let clock = 0
    let now = 0
    const grant = (request: Request): void => {
      clock = Math.max(clock + 1, micros(now))
      waiting = waiting.filter(other => other !== request)
      live.push({ request, until: this.#hold(request, now, clock) })
      writersTurn = request.wants === 'write'
    }
    const fits = ({ wants }: Request): boolean => {
      const { permits, of } = weightOf(wants)
      return live.reduce((sum, { request }) => sum + weightOf(request.wants).permits, permits) <= of
    }
    while (coming.length + waiting.length + live.length > 0) {
      now = Math.min(
        ...coming.slice(0, 1).map(({ t }) => t + WAY),
        ...waiting.map(leavesAt),
        ...live.map(({ until }) => until),
      )
      while (coming[0] && coming[0].t + WAY <= now) waiting.push(coming.shift()!)
      live = live.filter(({ until }) => until > now)
      for (const request of waiting.filter(each => leavesAt(each) <= now)) this.#timeOut(request)
      waiting = waiting.filter(each => leavesAt(each) > now)
      this.#sight(
        waiting.filter(({ fair }) => fair),
        now,
      )
      admit(waiting, fits, () => writersTurn, grant)
    }
    return now + 500
  }

  #request({ name, worker, key, fair, patience, t, wants }: Request): void {
    const terms = {
      ...(fair && { owner: `id-${name}` }),
      ...(patience !== undefined && { patience }),
      ...(wants !== undefined && { wants }),
    }
    this.add(t, 'request', {
      worker: `w${worker}`,
      attempt: name,
      key: `k${key}`,
      mode: fair ? 'fair' : 'unfair',
      ...terms,
    })
  }

  #timeOut({ name, worker, t, patience }: Request): void {
    this.add(t + patience!, 'end', { worker: `w${worker}`, attempt: name, how: 'timeout' })
  }

  #sight(queue: readonly Request[], at: number): void {
    const [first] = queue
    if (!first || (this.#kind === 'mutex' && queue.length < 2)) return
    const entries = (list: readonly Request[]): Entry[] =>
      list.map(({ name, worker, t }) => [`id-${name}`, String(micros(t)), `w${worker}`, `id-${name}`])
    const readers = queue.filter(({ wants }) => wants === 'read')
    this.add(at, 'queue', {
      key: `k${first.key}`,
      from: at - WAY,
      entries: entries(queue.filter(({ wants }) => wants !== 'read')),
      ...(this.#kind === 'readWrite' && { readers: entries(readers) }),
    })
  }

  /** Records the hold. Returns the time from which the server may grant the permits of this hold to others. */
  #hold({ name, worker: number, key: place, lease, hold, wants }: Request, issued: number, token: number): number {
    const [id, worker, key] = [`id-${name}`, `w${number}`, `k${place}`]
    const heard = issued + WAY
    const deadline = issued + lease - 2
    this.add(heard, 'grant', { worker, attempt: name, key, id, owner: id, token, via: 'handoff', deadline })
    if (wants !== 'read') {
      this.add(heard + WAY / 4, 'written', { worker, key, id, token })
      this.#writes.set(key, [...(this.#writes.get(key) ?? []), [token, id]])
    }
    const end = heard + hold
    const held = end < deadline
    if (!held) this.add(deadline, 'lost', { worker, id })
    this.add(end, 'release', { worker, id, held })
    this.add(end + 2 * WAY, 'released', { worker, id, result: held })
    return held ? end + WAY : issued + lease
  }
}

/** Admits all waiters that may hold now. */
function admit(
  waiting: readonly Request[],
  fits: (request: Request) => boolean,
  writersTurn: () => boolean,
  grant: (request: Request) => void,
): void {
  const queue = waiting.filter(({ fair }) => fair)
  const readers = queue.filter(({ wants }) => wants === 'read')
  const others = queue.filter(({ wants }) => wants !== 'read')
  // After a writer's turn, and whenever no writer is queued, all queued readers are admitted.
  if (readers[0] && fits(readers[0]) && (writersTurn() || others.length === 0)) {
    for (const reader of readers.splice(0)) grant(reader)
  }
  while (others[0] && fits(others[0])) grant(others.shift()!)
  if (readers.length + others.length > 0) return
  for (const newcomer of waiting) if (!newcomer.fair && fits(newcomer)) grant(newcomer)
}

/**
 * Returns when the server removes a waiter because of its timeout. This is a little before the waiter gives up, so a
 * grant that the server makes earlier still reaches the waiter in time.
 */
function leavesAt({ t, patience = Number.POSITIVE_INFINITY }: Request): number {
  return Math.max(t + WAY, t + patience - 3 * WAY)
}

function micros(t: number): number {
  return Math.round((WALL + t) * 1000)
}

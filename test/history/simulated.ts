/**
 * Histories as a lock without any fault would make them, to be checked as they are and after a mutation: one server for
 * each key that grants to the fair waiter with the smallest ticket, or else to whoever waits.
 */
import fc from 'fast-check'
import type { Fields, HistoryEvent, Kind } from './events.ts'

export interface Call {
  readonly key: number
  readonly worker: number
  /** ms after the call before it. */
  readonly after: number
  readonly fair: boolean
  readonly lease: number
  readonly hold: number
  readonly patience: number | undefined
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
  }),
  { minLength: 1, maxLength: 60 },
)

interface Request extends Call {
  readonly name: string
  readonly t: number
}

/** The time of day at monotonic 0. */
const WALL = 1_800_000_000_000
/** One way between a process and the server, ms. */
const WAY = 0.1

export class Simulated {
  readonly events: HistoryEvent[] = []
  readonly #writes = new Map<string, [token: number, id: string][]>()

  static of(list: readonly Call[]): Simulated {
    const history = new Simulated()
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
      return { ...call, name: `a${i}`, t }
    })
    const ends = [0, 1, 2].map(key => this.#serve(requests.filter(request => request.key === key)))
    const end = Math.max(t, ...ends)
    this.add(end + 1, 'healed', { bound: 500 })
    for (const [key, entries] of this.#writes) this.add(end + 2, 'register', { key, entries })
    for (const worker of [0, 1, 2, 3]) this.add(end + 3, 'exited', { worker: `w${worker}`, forced: false })
    this.add(end + 4, 'left', { names: [] })
    this.events.sort((a, b) => a.t - b.t)
  }

  /** All that happens to one key. Returns when the last of it was over. */
  #serve(requests: readonly Request[]): number {
    const open = new Set(requests)
    let now = 0
    for (const request of requests) this.#request(request)
    while (open.size > 0) {
      const waiting: Request[] = []
      for (const request of open) {
        if (request.t + WAY > now) continue
        const end = request.t + (request.patience ?? Number.POSITIVE_INFINITY)
        if (end > now + 3 * WAY) waiting.push(request)
        else {
          open.delete(request)
          this.add(end, 'end', { worker: `w${request.worker}`, attempt: request.name, how: 'timeout' })
        }
      }
      const queue = waiting.filter(({ fair }) => fair)
      const next = queue[0] ?? waiting[0]
      if (next) {
        if (queue.length > 1) this.#sight(queue, now)
        open.delete(next)
        now = this.#hold(next, now)
      } else if (open.size > 0) {
        now = Math.max(now, Math.min(...[...open].map(({ t }) => t)) + WAY)
      }
    }
    return now + 500
  }

  #request({ name, worker, key, fair, patience, t }: Request): void {
    const terms = { ...(fair && { owner: `id-${name}` }), ...(patience !== undefined && { patience }) }
    this.add(t, 'request', {
      worker: `w${worker}`,
      attempt: name,
      key: `k${key}`,
      mode: fair ? 'fair' : 'unfair',
      ...terms,
    })
  }

  #sight(queue: readonly Request[], at: number): void {
    this.add(at, 'queue', {
      key: `k${queue[0]!.key}`,
      from: at - WAY,
      entries: queue.map(({ name, worker, t }) => [`id-${name}`, String(micros(t)), `w${worker}`, `id-${name}`]),
    })
  }

  /** Returns when the server may grant again. */
  #hold({ name, worker: number, key: place, lease, hold }: Request, issued: number): number {
    const [id, worker, key] = [`id-${name}`, `w${number}`, `k${place}`]
    const token = micros(issued)
    const heard = issued + WAY
    const deadline = issued + lease - 2
    this.add(heard, 'grant', { worker, attempt: name, key, id, owner: id, token, via: 'handoff', deadline })
    this.add(heard + WAY / 4, 'written', { worker, key, id, token })
    this.#writes.set(key, [...(this.#writes.get(key) ?? []), [token, id]])
    const end = heard + hold
    const held = end < deadline
    if (!held) this.add(deadline, 'lost', { worker, id })
    this.add(end, 'release', { worker, id, held })
    this.add(end + 2 * WAY, 'released', { worker, id, result: held })
    return held ? end + WAY : issued + lease
  }
}

function micros(t: number): number {
  return Math.round((WALL + t) * 1000)
}

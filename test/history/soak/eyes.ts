/**
 * Records the servers' times of day, and when the event loop stood still, on which all proxies depend. With one server,
 * also records the fair queues in Redis. Over a quorum, their order is not judged.
 */
import type { Redis } from 'ioredis'
import { decodeClaim, decodePermitsClaim } from '../../../src/kinds/claim.ts'
import { queueEntries } from '../recorded.ts'
import { now } from '../recorder.ts'
import type { Stage } from './stage.ts'
import { kindOf, lockName } from './terms.ts'

/**
 * An unchanged queue is recorded again after this time, in ms. A fault that comes between a snapshot and an overtaking
 * may excuse the overtaking. The newer the snapshot, the fewer faults come in between.
 */
const AGAIN = 500
/** Interval between records of the servers' times of day, in ms. */
const COMPARE = 1_000
/** Time between two looks at the queues and at the event loop, in ms. */
const LOOK = 40
/** If a look comes more than this many ms late, the event loop counts as having stood still. */
const STALLED = 200
/** The number of characters of a ticket. */
const TICKET = 16

interface Sight {
  readonly text: string
  readonly t: number
}

export class Eyes {
  readonly #stage: Stage
  readonly #seen = new Map<string, Sight>()
  readonly #redis: Redis
  #timers: NodeJS.Timeout[] = []
  #looking = false

  constructor(stage: Stage) {
    this.#stage = stage
    this.#redis = stage.server.connect()
  }

  open(): void {
    const readClocks = () => {
      for (const server of this.#stage.servers) this.#stage.readClock(server)
    }
    readClocks()
    let last = now()
    const look = () => {
      const t = now()
      if (t - last > LOOK + STALLED) this.#stage.recorder.record('stall', { from: last }, t)
      last = t
      if (this.#stage.size === 1) void this.#look()
    }
    this.#timers = [setInterval(readClocks, COMPARE), setInterval(look, LOOK)]
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer)
    this.#redis.disconnect()
  }

  async #look(): Promise<void> {
    if (this.#looking || this.#redis.status !== 'ready') return
    this.#looking = true
    const from = now()
    try {
      const { keys } = this.#stage
      // One transaction reads both queues of a lock at the same instant.
      const pipeline = this.#redis.multi()
      for (const key of keys) {
        for (const queue of queuesOf(key)) pipeline.zrange(`${lockName(key)}:${queue}`, '0', '-1', 'WITHSCORES')
      }
      const replies = (await pipeline.exec()) ?? []
      const t = now()
      for (const key of keys) {
        const [[error, queue] = [], [others, more] = []] = replies.splice(0, queuesOf(key).length)
        if (!error && !others) this.#saw(key, queue as string[], more as string[] | undefined, from, t)
      }
    } catch {
      // The server could not be read, so there is nothing to record.
    } finally {
      this.#looking = false
    }
  }

  /** `more`: the second queue of the lock. */
  #saw(key: string, queue: readonly string[], more: readonly string[] = [], from: number, t: number): void {
    // Each waiter is two items. For a mutex, the checker compares waiters of one snapshot, so a snapshot
    // needs at least two waiters. For other locks, the checker also compares a waiter with later arrivals, so one
    // waiter is enough.
    if (queue.length + more.length < (kindOf(key) === 'mutex' ? 4 : 2)) return
    const text = [...queue, '', ...more].join('\n')
    const before = this.#seen.get(key)
    if (before && before.text === text && t - before.t < AGAIN) return
    this.#seen.set(key, { text, t })
    const decode = kindOf(key) === 'mutex' ? decodeClaim : decodePermitsClaim
    const entries = queueEntries(queue, decode)
    const groups = kindOf(key) === 'semaphore' ? queueEntries(ticketsBehind(more), decode) : []
    const both = kindOf(key) === 'readWrite' ? { readers: queueEntries(more, decode) } : {}
    const all = [...entries, ...groups].sort(([, one], [, other]) => Number(one) - Number(other))
    this.#stage.recorder.record('queue', { key, from, entries: all, ...both }, t)
  }
}

/** Returns the last parts of the names of a lock's queues (lua/README.md). */
function queuesOf(key: string): readonly string[] {
  const kind = kindOf(key)
  if (kind === 'mutex') return ['q']
  return kind === 'readWrite' ? ['q', 'r'] : ['q', 'w']
}

/** Each waiter of a group is an entry `<ticket><claim>`, and the number of its group. Returns claims and tickets instead. */
function ticketsBehind(flat: readonly string[]): string[] {
  return flat.flatMap((text, i) => (i % 2 === 0 ? [text.slice(TICKET), text.slice(0, TICKET)] : []))
}

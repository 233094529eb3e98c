/** Records the fair queues in Redis and the server's time of day. */
import { decodeClaim, decodePermitsClaim } from '../../../src/kinds/claim.ts'
import { queueEntries } from '../recorded.ts'
import { now } from '../recorder.ts'
import { looking } from './looks.ts'
import type { Stage } from './stage.ts'
import { kindOf, lockName } from './terms.ts'

/**
 * An unchanged queue is recorded again after this time, in ms. A fault that comes between a snapshot and an overtaking
 * may excuse the overtaking. The newer the snapshot, the fewer faults come in between.
 */
const AGAIN = 500
/** Interval between records of the server's time of day, in ms. */
const COMPARE = 1_000
/** The number of characters of a ticket. */
const TICKET = 16

interface Sight {
  readonly text: string
  readonly t: number
}

export class Eyes {
  readonly #stage: Stage
  readonly #seen = new Map<string, Sight>()
  #ends: (() => void)[] = []
  #looking = false

  constructor(stage: Stage) {
    this.#stage = stage
  }

  open(): void {
    this.#stage.readClock()
    const comparing = setInterval(() => this.#stage.readClock(), COMPARE)
    this.#ends = [() => clearInterval(comparing), looking(this.#stage.recorder, () => this.#look())]
  }

  close(): void {
    for (const end of this.#ends) end()
  }

  async #look(): Promise<void> {
    if (this.#looking || this.#stage.eyes.status !== 'ready') return
    this.#looking = true
    const from = now()
    try {
      const { keys } = this.#stage
      // One transaction reads both queues of a lock at the same instant.
      const pipeline = this.#stage.eyes.multi()
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

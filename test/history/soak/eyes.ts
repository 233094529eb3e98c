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
      // One transaction reads both queues of a read-write lock at the same instant.
      const pipeline = this.#stage.eyes.multi()
      const asked = keys.flatMap(key => (kindOf(key) === 'readWrite' ? [key, key] : [key]))
      for (const [i, key] of asked.entries()) {
        const queue = asked[i - 1] === key ? 'r' : 'q'
        pipeline.zrange(`${lockName(key)}:${queue}`, '0', '-1', 'WITHSCORES')
      }
      const replies = (await pipeline.exec()) ?? []
      const t = now()
      for (const [i, key] of asked.entries()) {
        if (asked[i - 1] === key) continue
        const [[error, queue] = [], [noReaders, readers] = []] =
          asked[i + 1] === key ? replies.slice(i, i + 2) : [replies[i]]
        if (!error && !noReaders) this.#saw(key, queue as string[], readers as string[] | undefined, from, t)
      }
    } catch {
      // The server could not be read, so there is nothing to record.
    } finally {
      this.#looking = false
    }
  }

  #saw(key: string, queue: readonly string[], readers: readonly string[] | undefined, from: number, t: number): void {
    // Each waiter is two items of `queue`. For a mutex, the checker compares waiters of one snapshot, so a snapshot
    // needs at least two waiters. For other locks, the checker also compares a waiter with later arrivals, so one
    // waiter is enough.
    if (queue.length + (readers?.length ?? 0) < (kindOf(key) === 'mutex' ? 4 : 2)) return
    const text = [...queue, '', ...(readers ?? [])].join('\n')
    const before = this.#seen.get(key)
    if (before && before.text === text && t - before.t < AGAIN) return
    this.#seen.set(key, { text, t })
    const decode = kindOf(key) === 'mutex' ? decodeClaim : decodePermitsClaim
    const entries = queueEntries(queue, decode)
    const both = readers ? { readers: queueEntries(readers, decode) } : {}
    this.#stage.recorder.record('queue', { key, from, entries, ...both }, t)
  }
}

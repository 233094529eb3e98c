/** Looks at the fair queues in Redis all the time, and at its own event loop, through which all proxies go. */
import { queueEntries } from '../recorded.ts'
import { now } from '../recorder.ts'
import type { Stage } from './stage.ts'
import { lockName } from './terms.ts'

/** Between two looks, ms. */
const LOOK = 40
/** A queue that has not changed is recorded again after this many ms, because a newer sight leaves less time for excuses. */
const AGAIN = 500
/** A look that comes this much late says that the event loop stood still. */
const STALLED = 200
/** The clocks are compared this often, ms. */
const COMPARE = 1_000

interface Sight {
  readonly text: string
  readonly t: number
}

export class Eyes {
  readonly #stage: Stage
  readonly #seen = new Map<string, Sight>()
  readonly #timers: NodeJS.Timeout[] = []
  #looking = false

  constructor(stage: Stage) {
    this.#stage = stage
  }

  open(): void {
    const { recorder } = this.#stage
    this.#stage.readClock()
    this.#timers.push(setInterval(() => this.#stage.readClock(), COMPARE))
    let last = now()
    this.#timers.push(
      setInterval(() => {
        const t = now()
        if (t - last > LOOK + STALLED) recorder.record('stall', { from: last }, t)
        last = t
        this.#look()
      }, LOOK),
    )
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  async #look(): Promise<void> {
    if (this.#looking || this.#stage.eyes.status !== 'ready') return
    this.#looking = true
    const from = now()
    try {
      const pipeline = this.#stage.eyes.pipeline()
      for (const key of this.#stage.keys) pipeline.zrange(`${lockName(key)}:queue`, '0', '-1', 'WITHSCORES')
      const replies = (await pipeline.exec()) ?? []
      const t = now()
      for (const [i, [error, reply]] of replies.entries()) {
        if (!error) this.#saw(this.#stage.keys[i]!, reply as string[], from, t)
      }
    } catch {
      // Out of reach: there is nothing to see.
    } finally {
      this.#looking = false
    }
  }

  #saw(key: string, flat: readonly string[], from: number, t: number): void {
    if (flat.length < 4) return
    const text = flat.join('\n')
    const before = this.#seen.get(key)
    if (before && before.text === text && t - before.t < AGAIN) return
    this.#seen.set(key, { text, t })
    this.#stage.recorder.record('queue', { key, from, entries: queueEntries(flat) }, t)
  }
}

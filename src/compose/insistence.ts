/**
 * How a single attempt at several locks goes on after it was refused one of them. It must ask again, because another
 * single attempt may have that part only until it learns that it was itself refused an earlier part.
 *
 * If single attempts come at the same moment, and no other caller has their parts, one of them succeeds (I4). For
 * suppose that all of them fail:
 *
 *   - Of the parts that come first in their attempts, take the smallest in the order. The attempt that was granted it
 *     has no smaller part. So it keeps this part, while it asks again for the part that it was refused.
 *   - Of all parts that are kept so, take the largest. Its attempt asks for a part that is larger still. So the attempt
 *     that was granted that part does not keep it, but gives it back as soon as its own answers have arrived. The first
 *     of the two gets it within a few round trips, and goes on to its next part. So it does not fail.
 */
import { type AwakeClock, awake, type Clock } from '../clock.ts'
import { type HolderInfo, type LockConnectionError, LockTimeoutError } from '../errors.ts'
import type { Lease } from '../key/lease.ts'
import { limit } from '../key/limits.ts'
import type { KeyedLock } from '../lock.ts'
import type { LockOptions } from '../options.ts'
import { type Follower, late } from './follower.ts'

/** The outcome of one attempt at one of the locks that are taken together. */
export interface Tried {
  readonly part: KeyedLock
  readonly lease: Lease | null
  /** The holder when the attempt was refused; undefined if it is not known. */
  readonly holder: HolderInfo | undefined
  /** For how many ms the holder had held the lock at least, when the attempt was refused. */
  readonly age: number
  /** Why the attempt has no answer; absent: it has one. */
  readonly error?: LockConnectionError
}

/** Makes one attempt at one lock. */
export async function attempt(part: KeyedLock, options: LockOptions): Promise<Tried> {
  const { clock } = part.calls.caller.session
  const asked = clock.now()
  let holder: HolderInfo | undefined
  let age = 0
  const lease = await part.tryLock({ ...options, timeout: 0 }, found => {
    holder = found
    // `heldFor` includes the time that the answer took, because it counts up to now.
    if (found) age = found.heldFor - (clock.now() - asked)
  })
  return { part, lease, holder, age }
}

/** A single attempt settles within this many ms, even if it asks again. */
const SINGLE = 1_000
/**
 * For how many ms a single attempt asks again for a part: while it keeps others, and while it keeps none. If its first
 * answers took long, it asks for four, or for two, times as long as they took. Within that time, other attempts have
 * given back what they do not keep.
 */
const MOMENT = { keeping: 25, empty: 10 }

export class Insistence {
  readonly #options: LockOptions
  readonly #end: Follower
  readonly #clock: AwakeClock
  readonly #keeping: number
  readonly #empty: number

  /** `took`: how many ms the answers to the first attempts took. `end` ends the call. */
  constructor(options: LockOptions, took: number, end: Follower, clock: Clock) {
    this.#options = { ...options, signal: end.signal }
    this.#end = end
    this.#clock = awake(clock)
    this.#keeping = Math.max(MOMENT.keeping, 4 * took)
    this.#empty = Math.max(MOMENT.empty, 2 * took)
    end.abortAfter(SINGLE - took, clock)
  }

  /** Throws LockTimeoutError if one of these locks has a holder that keeps it. */
  check(refused: readonly Tried[]): void {
    for (const tried of refused) if (this.#lasts(tried)) throw new LockTimeoutError(tried.part.key, 0, tried.holder)
  }

  /**
   * Asks again for a part, for a moment. `keeping`: whether the attempt keeps other parts. If it keeps none, the proof
   * above does not need it. So it asks for a shorter time, and its caller learns sooner that the part is taken.
   * @throws LockTimeoutError if the part was not granted
   */
  async ask(part: KeyedLock, keeping: boolean): Promise<Lease> {
    const until = this.#clock.now() + (keeping ? this.#keeping : this.#empty)
    let tried: Tried | undefined
    try {
      for (let pause = 0, left = 1; left > 0 && !(tried && this.#lasts(tried)); pause = 2 * pause + 1) {
        if (pause > 0) await this.#rest(Math.min(pause, left))
        left = until - this.#clock.now()
        tried = await attempt(part, this.#options)
        if (tried.lease) return tried.lease
      }
    } catch (error) {
      if (error !== late) throw error
    }
    throw new LockTimeoutError(part.key, 0, tried?.holder)
  }

  /**
   * Returns whether the holder is the only one that the lock can have, and has held it for longer than attempts hold
   * what they give back.
   */
  #lasts({ part, age }: Tried): boolean {
    return (part.permits ?? 1) === 1 && age > this.#keeping
  }

  #rest(ms: number): Promise<void> {
    return new Promise(resolve => {
      const leave = limit(this.#end.signal, ms, this.#clock, () => {
        leave?.()
        resolve()
      })
    })
  }
}

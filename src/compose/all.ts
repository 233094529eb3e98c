/**
 * Takes several locks together: all of them or none. Each of these locks is called a part.
 *
 * The parts are always taken in the order of their names in Redis, whatever order the caller gave. So a caller that
 * waits for a part never holds a later one, and callers cannot wait for each other in a circle (Havender, "Avoiding
 * deadlock in multitasking systems", 1968).
 *
 *   1. All parts are tried at once. If they are all free, this takes one round trip.
 *   2. The parts before the first refused part are kept, and all later parts are given back. If later parts were kept,
 *      two callers could wait for each other for ever: A was refused x and keeps the later part y, while B has x and
 *      waits for y.
 *   3. The missing parts are waited for one after the other, within the rest of the timeout.
 *
 * If a part is lost while another is waited for, the wait ends. Whenever a wait fails, the parts that were taken before
 * are given back in the background.
 */
import { LockConnectionError, LockTimeoutError } from '../errors.ts'
import type { Lease } from '../lease/lease.ts'
import type { KeyedLock } from '../lock.ts'
import { callTermsOf, type LockOptions, type Settings } from '../options.ts'
import { type Holdable, type Using, using, wrapped } from '../using.ts'
import { MultiLease } from './multi-lease.ts'

/** One of the locks that are taken together, and its lease. */
interface Taken {
  readonly lock: KeyedLock
  readonly lease: Lease
}

/**
 * Several locks, of any kind, that are taken together. Made by `LockClient.all`.
 * @since 0.1.0
 */
export class MultiLock {
  /** Each lock once, in the order in which the locks are taken. */
  readonly #parts: readonly KeyedLock[]
  readonly #settings: Settings
  readonly #holdable: Holdable<MultiLease> = {
    lock: options => this.lock(options),
    within: <T>({ leases }: MultiLease, fn: () => T) => {
      const inside = leases.reduce((run, lease, i) => () => this.#parts[i]!.within(lease, run), fn)
      return inside()
    },
    giveBack: async ({ leases }) => {
      const ended = await Promise.all(leases.map((lease, i) => giveBack({ lock: this.#parts[i]!, lease })))
      return ended.every(Boolean)
    },
  }

  /** @internal */
  constructor(parts: readonly KeyedLock[], settings: Settings) {
    const byOrder = new Map<string, KeyedLock>()
    // If the same read-write lock is given twice, once to read and once to write, only the write part is kept. A writer
    // may read, too.
    for (const part of parts) if (byOrder.get(part.order)?.calls.shared !== false) byOrder.set(part.order, part)
    this.#parts = [...byOrder.keys()].sort().map(order => byOrder.get(order)!)
    this.#settings = settings
  }

  /**
   * Waits until all of the locks are granted.
   * @param options options of each part, except `timeout`, which applies to all of them together
   * @returns a lease of all of them. The caller releases it
   * @throws LockTimeoutError after `timeout`, with the key of the part that was waited for
   * @throws LockLostError when a part was lost while another was waited for
   * @throws what `LockClient.lock` throws
   * @since 0.1.0
   */
  lock(options: LockOptions = {}): Promise<MultiLease> {
    return this.#acquire(options, true) as Promise<MultiLease>
  }

  /**
   * Makes one attempt at each lock. With `timeout`, waits for all of them together, for at most that time.
   * @returns a lease of all of them, or null if one of them is taken
   * @throws what `lock` throws, except LockTimeoutError
   * @since 0.1.0
   */
  async tryLock(options: LockOptions = {}): Promise<MultiLease | null> {
    const { timeout } = callTermsOf(options, this.#settings)
    if (timeout) return this.#acquire(options, false)
    const taken = await this.#tryAll(options, true)
    const granted = taken.filter(isTaken)
    if (granted.length === taken.length) return new MultiLease(granted.map(({ lease }) => lease))
    for (const part of granted) giveBack(part)
    return null
  }

  /**
   * Runs `fn` while all of the locks are held, and always releases the locks afterwards. Inside `fn`, calls on the same
   * keys re-enter.
   * @param fn receives the lease, which it need not release
   * @returns what `fn` returns
   * @throws what `fn` throws
   * @throws LockLostError when a part was lost while `fn` ran, and `fn` did not throw
   * @throws what `lock` throws
   * @since 0.1.0
   */
  using<T>(fn: (lease: MultiLease) => T | PromiseLike<T>): Promise<T>
  /**
   * Does the same as `using(fn)`, with options for this call.
   * @throws what `using(fn)` throws
   * @since 0.1.0
   */
  using<T>(options: LockOptions, fn: (lease: MultiLease) => T | PromiseLike<T>): Promise<T>
  using<T>(...args: Using<MultiLease, T>): Promise<T> {
    return using(this.#holdable, args)
  }

  /**
   * Wraps `fn` in a function that runs `fn` while all of the locks are held.
   * @param options options of each call
   * @returns a function with the parameters of `fn`; its promise settles like that of `using`
   * @throws LockArgumentError when `fn` or an option is wrong
   * @since 0.1.0
   */
  wrap<This, Args extends unknown[], R>(
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options: LockOptions = {},
  ): (this: This, ...args: Args) => Promise<R> {
    callTermsOf(options, this.#settings)
    return wrapped(fn, call => this.using(options, call))
  }

  /**
   * Resolves to a lease of all of the locks, or rejects. If the timeout is over, and the call is not `blocking`,
   * resolves to null if an attempt at a part was refused, and otherwise rejects with a LockConnectionError.
   */
  async #acquire(options: LockOptions, blocking: boolean): Promise<MultiLease | null> {
    const begun = performance.now()
    const { timeout = Number.POSITIVE_INFINITY, signal } = callTermsOf(options, this.#settings)
    const left = () => Math.max(0, timeout - (performance.now() - begun))
    const tried = await this.#tryAll(options, timeout === 0)
    const missing = tried.findIndex(part => !isTaken(part))
    const kept = tried.slice(0, missing < 0 ? undefined : missing) as Taken[]
    const leases = kept.map(({ lease }) => lease)
    for (const part of tried.slice(kept.length)) if (isTaken(part)) giveBack(part)
    const refused = tried.includes(null)
    const unanswered = refused ? undefined : (tried[missing] as LockConnectionError | undefined)
    try {
      for (const part of this.#parts.slice(leases.length)) {
        const signals = leases.map(({ signal }) => signal)
        if (signal) signals.push(signal)
        // The first attempt did not get this part, and no time is left to ask for it again.
        if (left() === 0) {
          if (unanswered && !blocking) throw unanswered
          throw new LockTimeoutError(part.key, timeout, undefined, undefined, unanswered?.of())
        }
        const lease = await part[blocking ? 'lock' : 'tryLock']({
          ...options,
          timeout: left(),
          signal: signals.length > 0 ? AbortSignal.any(signals) : undefined,
        })
        if (!lease) throw new LockTimeoutError(part.key, timeout)
        leases.push(lease)
      }
      return new MultiLease(leases)
    } catch (error) {
      // The leases are given back in the background, because a Redis that does not answer must not delay the caller
      // (I6).
      for (const [i, lease] of leases.entries()) giveBack({ lock: this.#parts[i]!, lease })
      const late = error instanceof LockConnectionError && refused && left() === 0
      if (!blocking && (late || error instanceof LockTimeoutError)) return null
      if (!(error instanceof LockTimeoutError)) throw error
      throw error.after(performance.now() - begun)
    }
  }

  /**
   * Makes a single attempt at each part, all at the same time. The result for a part is null if the part is taken. If
   * Redis does not answer for a part, the result is the error, or, if the call makes these attempts only (`once`), the
   * promise rejects with it. Rejects with any other error.
   */
  async #tryAll(options: LockOptions, once: boolean): Promise<(Taken | LockConnectionError | null)[]> {
    const tries = await Promise.allSettled(this.#parts.map(lock => lock.tryLock({ ...options, timeout: 0 })))
    const taken = tries.map((tried, i) => {
      if (tried.status === 'rejected') return tried.reason
      return tried.value && { lock: this.#parts[i]!, lease: tried.value }
    })
    for (const tried of tries) {
      if (tried.status === 'fulfilled' || (!once && tried.reason instanceof LockConnectionError)) continue
      for (const part of taken) if (isTaken(part)) giveBack(part)
      throw tried.reason
    }
    return taken
  }
}

function isTaken(part: Taken | Error | null): part is Taken {
  return part !== null && 'lease' in part
}

/**
 * Gives the part back. Never rejects. The caller need not wait for the promise: if it takes the part again, Redis runs
 * this release first.
 */
function giveBack({ lock, lease }: Taken): Promise<boolean> {
  return lock.giveBack(lease)
}

/**
 * Several locks as one: all of them or none.
 *
 * The parts are taken in one fixed order, that of their names in Redis, whichever they were given in. So nobody who waits
 * for a part holds one that comes after it, and no two callers can wait for each other in a circle (Havender, "Avoiding
 * deadlock in multitasking systems", 1968).
 *
 *   1. All parts are tried at once, which takes one round trip where nobody else has any of them.
 *   2. Of those that were granted only the first in a row are kept: A that has y and waits for x, and B that has x and
 *      waits for y, would wait for ever.
 *   3. The others are waited for one after the other, within what is left of the time-out.
 *
 * A part that is lost while others are waited for ends the wait. Whatever ends it, what was taken is given back, and nobody is kept
 * waiting for that.
 */
import { LockConnectionError, LockTimeoutError } from '../errors.ts'
import type { Lease } from '../lease/lease.ts'
import type { KeyedLock } from '../lock.ts'
import { callTermsOf, type LockOptions, type Settings } from '../options.ts'
import { type Holdable, type Using, using, wrapped } from '../using.ts'
import { MultiLease } from './multi-lease.ts'

/** A part that has been granted. */
interface Taken {
  readonly lock: KeyedLock
  readonly lease: Lease
}

/**
 * Several locks, of any kind, that are taken together. Made by `LockClient.all`.
 * @since 0.2.0
 */
export class MultiLock {
  /** In the order in which they are taken, each once. */
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
    // To write is to read as well.
    for (const part of parts) if (byOrder.get(part.order)?.calls.shared !== false) byOrder.set(part.order, part)
    this.#parts = [...byOrder.keys()].sort().map(order => byOrder.get(order)!)
    this.#settings = settings
  }

  /**
   * Waits until all are granted.
   * @param options of each part, but for `timeout`, which is for all of them together
   * @returns what holds them, to be released
   * @throws LockTimeoutError after `timeout`, with the part that was waited for
   * @throws LockLostError when one was lost while another was waited for
   * @throws what `LockClient.lock` throws
   * @since 0.2.0
   */
  async lock(options: LockOptions = {}): Promise<MultiLease> {
    const begun = performance.now()
    const { timeout = Number.POSITIVE_INFINITY, signal } = callTermsOf(options, this.#settings)
    const left = () => Math.max(0, timeout - (performance.now() - begun))
    // What cannot be asked for now is waited for.
    const taken = await this.#tryAll(options, left(), error => error instanceof LockConnectionError)
    const missing = taken.indexOf(undefined)
    const kept = taken.slice(0, missing < 0 ? undefined : missing) as Taken[]
    const leases = kept.map(({ lease }) => lease)
    for (const part of taken.slice(kept.length)) if (part) giveBack(part)
    try {
      for (const part of this.#parts.slice(leases.length)) {
        const signals = leases.map(({ signal }) => signal)
        if (signal) signals.push(signal)
        // Refused already, by the first attempt; and what is left may be less than a request takes.
        if (left() === 0) throw new LockTimeoutError(part.key, timeout)
        const lease = await part.lock({
          ...options,
          timeout: timeout < Number.POSITIVE_INFINITY ? left() : undefined,
          signal: signals.length > 0 ? AbortSignal.any(signals) : undefined,
        })
        leases.push(lease)
      }
      return new MultiLease(leases)
    } catch (error) {
      // In the background: where Redis does not answer, that takes longer than a caller may be kept (I6).
      for (const [i, lease] of leases.entries()) giveBack({ lock: this.#parts[i]!, lease })
      if (!(error instanceof LockTimeoutError)) throw error
      const { key, holder, position, cause } = error
      throw new LockTimeoutError(key as string, performance.now() - begun, holder, position, cause as Error | undefined)
    }
  }

  /**
   * One attempt at each, or with `timeout` as many as fit in it.
   * @returns what holds them, or null if somebody else has one of them
   * @throws what `lock` throws, but for LockTimeoutError
   * @since 0.2.0
   */
  async tryLock(options: LockOptions = {}): Promise<MultiLease | null> {
    const { timeout } = callTermsOf(options, this.#settings)
    if (timeout) {
      return this.lock(options).catch(error => {
        if (error instanceof LockTimeoutError) return null
        throw error
      })
    }
    const taken = await this.#tryAll(options, Number.POSITIVE_INFINITY)
    const granted = taken.filter(part => part !== undefined)
    if (granted.length === taken.length) return new MultiLease(granted.map(({ lease }) => lease))
    for (const part of granted) giveBack(part)
    return null
  }

  /**
   * Runs `fn` under all of them, and releases them in any case. Inside `fn`, locks of the same keys re-enter.
   * @param fn gets what holds them; it need not release it
   * @returns what `fn` returns
   * @throws what `fn` throws
   * @throws LockLostError when one was lost while `fn` ran, and `fn` did not throw
   * @throws what `lock` throws
   * @since 0.2.0
   */
  using<T>(fn: (lease: MultiLease) => T | PromiseLike<T>): Promise<T>
  /**
   * The same with options for this call.
   * @throws as above
   * @since 0.2.0
   */
  using<T>(options: LockOptions, fn: (lease: MultiLease) => T | PromiseLike<T>): Promise<T>
  using<T>(...args: Using<MultiLease, T>): Promise<T> {
    return using(this.#holdable, args)
  }

  /**
   * `fn` as a function that runs under all of them.
   * @param options of each call
   * @returns a function with the parameters of `fn`, whose promise settles as that of `using`
   * @throws LockArgumentError when `fn` or an option is wrong
   * @since 0.2.0
   */
  wrap<This, Args extends unknown[], R>(
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options: LockOptions = {},
  ): (this: This, ...args: Args) => Promise<R> {
    callTermsOf(options, this.#settings)
    return wrapped(fn, call => this.using(options, call))
  }

  /**
   * A single attempt at each, all at once; undefined: somebody else has it, it was not answered within `limit` ms, or it failed in
   * a way that may be `passed` over. Rejects with any other failure.
   */
  async #tryAll(options: LockOptions, limit: number, passed = (_: unknown) => false): Promise<(Taken | undefined)[]> {
    const late = new AbortController()
    const timer = limit > 0 && limit < Number.POSITIVE_INFINITY ? setTimeout(() => late.abort(late), limit) : undefined
    const { signal } = options
    const both = timer ? AbortSignal.any(signal ? [signal, late.signal] : [late.signal]) : signal
    const tries = await Promise.allSettled(
      this.#parts.map(lock => lock.tryLock({ ...options, timeout: 0, signal: both })),
    )
    clearTimeout(timer)
    const taken = tries.map((tried, i) => {
      const lease = tried.status === 'fulfilled' && tried.value
      return lease ? { lock: this.#parts[i]!, lease } : undefined
    })
    for (const tried of tries) {
      if (tried.status === 'fulfilled' || tried.reason === late || passed(tried.reason)) continue
      for (const part of taken) if (part) giveBack(part)
      throw tried.reason
    }
    return taken
  }
}

/** In the background; it does not reject. What is asked for after it, by the same client, comes after it. */
function giveBack({ lock, lease }: Taken): Promise<boolean> {
  return lock.giveBack(lease)
}

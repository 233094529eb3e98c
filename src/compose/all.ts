/**
 * Takes several locks together: all of them or none. Each of these locks is called a part.
 *
 * The parts are always taken in one order, by kind and then by key, whatever order the caller gave. So a caller that
 * waits for a part never holds a later one, and callers cannot wait for each other in a circle (Havender, "Avoiding
 * deadlock in multitasking systems", 1968).
 *
 *   1. All parts are tried at once, in one write. If they are all free, this takes one round trip.
 *   2. The parts before the first refused part are kept, and all later parts are given back. If later parts were kept,
 *      two callers could wait for each other for ever: A was refused x and keeps the later part y, while B has x and
 *      waits for y.
 *   3. The missing parts are waited for one after the other, within the rest of the timeout. A single attempt does not
 *      wait. So of several single attempts at one moment, each may be refused a part that another has only until it
 *      gives it back.
 *
 * If a part is lost while another is waited for, the wait ends. Whenever a wait fails, the parts that were taken before
 * are given back in the background.
 */

import { toMicros } from '../clock.ts'
import { type HolderInfo, LockArgumentError, LockConnectionError, LockTimeoutError } from '../errors.ts'
import type { Lease } from '../key/lease.ts'
import type { ClientContext } from '../kind-client.ts'
import type { KeyedLock } from '../lock.ts'
import type { LockOptions } from '../options.ts'
import { callTermsOf } from '../settings.ts'
import { type Holdable, type Using, using, wrapped } from '../using.ts'
import { Follower } from './follower.ts'
import { MultiLease } from './multi-lease.ts'

const NEVER = Number.POSITIVE_INFINITY

/** The outcome of one attempt at one part. */
interface Tried {
  readonly part: KeyedLock
  readonly lease: Lease | null
  /** The holder because of which the attempt was refused; undefined if it is not known. */
  readonly holder?: HolderInfo | undefined
  /** Why the attempt has no answer; absent: it has one. */
  readonly error?: LockConnectionError
}

async function attempt(part: KeyedLock, options: LockOptions): Promise<Tried> {
  let holder: HolderInfo | undefined
  const lease = await part.tryLock({ ...options, timeout: 0 }, found => {
    holder = found
  })
  return { part, lease, holder }
}

/**
 * Several locks, of any kind, that are taken together. Made by `LockClient.all`.
 * @since 0.2.0
 */
export class MultiLock {
  /** Each lock once, in the order in which the locks are taken. */
  readonly #parts: readonly KeyedLock[]
  readonly #context: ClientContext
  readonly #holdable: Holdable<MultiLease> = {
    lock: options => this.lock(options),
    within: <T>({ leases }: MultiLease, fn: () => T) => {
      const inside = leases.reduce((run, lease, i) => () => this.#parts[i]!.within(lease, run), fn)
      return inside()
    },
    giveBack: async ({ leases }) => (await Promise.all(this.#giveBack(leases))).every(Boolean),
  }

  /** @internal */
  constructor(parts: readonly KeyedLock[], context: ClientContext) {
    const byOrder = new Map<string, KeyedLock>()
    for (const part of parts) {
      const { order, key, permits } = part
      const same = byOrder.get(order)
      if (same && same.permits !== permits) {
        throw new LockArgumentError(
          'parts',
          [same.permits, permits],
          `one number of permits for the semaphore "${key}"`,
        )
      }
      // If the same read-write lock is given twice, once to read and once to write, only the write part is kept. A
      // writer may read, too.
      if (same?.client.shared !== false) byOrder.set(order, part)
    }
    this.#parts = [...byOrder.keys()].sort().map(order => byOrder.get(order)!)
    this.#context = context
  }

  /**
   * Waits until all of the locks are granted.
   * @param options options of each part, except `timeout`, which applies to all of them together
   * @returns a lease of all of them. The caller releases it
   * @throws LockTimeoutError after `timeout`, with the key of the part that was waited for
   * @throws LockLostError when a part was lost while another was waited for
   * @throws what `LockClient.lock` throws
   * @since 0.2.0
   */
  lock(options: LockOptions = {}): Promise<MultiLease> {
    return this.#acquire(options, true) as Promise<MultiLease>
  }

  /**
   * Makes one attempt at all of the locks. If several such attempts come at the same moment, all of them may be refused.
   * With `timeout`, waits for all of the locks together, for at most that time.
   * @returns a lease of all of them, or null if one of them is taken
   * @throws what `lock` throws, except LockTimeoutError
   * @since 0.2.0
   */
  async tryLock(options: LockOptions = {}): Promise<MultiLease | null> {
    return this.#acquire(options, false)
  }

  /**
   * Runs `fn` while all of the locks are held, and always releases the locks afterwards. Inside `fn`, calls on the same
   * keys re-enter.
   * @param fn receives the lease, which it need not release
   * @returns what `fn` returns
   * @throws what `fn` throws, or LockLostError if a part was lost while `fn` ran, as `LockClient.using` does
   * @throws what `lock` throws
   * @since 0.2.0
   */
  using<T>(fn: (lease: MultiLease) => T | PromiseLike<T>): Promise<T>
  /**
   * Does the same as `using(fn)`, with options for this call.
   * @throws what `using(fn)` throws
   * @since 0.2.0
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
   * @since 0.2.0
   */
  wrap<This, Args extends unknown[], R>(
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options: LockOptions = {},
  ): (this: This, ...args: Args) => Promise<R> {
    callTermsOf(options, this.#context.settings)
    return wrapped(fn, call => this.using(options, call))
  }

  /**
   * Resolves to a lease of all of the locks, or rejects. If the timeout is over, and the call is not `blocking`,
   * resolves to null if an attempt at a part was refused, and otherwise rejects with a LockConnectionError.
   */
  async #acquire(options: LockOptions, blocking: boolean): Promise<MultiLease | null> {
    const { clock } = this.#context
    const begun = clock.now()
    const waited = () => toMicros(clock.now() - begun)
    const { timeout = blocking ? NEVER : 0, signal } = callTermsOf(options, this.#context.settings)
    const end = new Follower()
    if (signal) end.follow(signal)
    const leases: Lease[] = []
    let refused = false
    try {
      const tries = await this.#tryAll(options, timeout === 0)
      const first = tries.findIndex(({ lease }) => !lease)
      const missing = first < 0 ? [] : tries.slice(first)
      for (const { part, lease } of missing) if (lease) part.giveUp(lease)
      for (const { lease } of tries.slice(0, tries.length - missing.length)) leases.push(lease as Lease)
      if (missing.length === 0) return new MultiLease(leases)
      refused = missing.some(({ lease, error }) => !lease && !error)
      const unanswered = refused ? undefined : missing[0]?.error
      for (const { signal } of leases) end.follow(signal)
      for (const { part, holder } of missing) {
        const left = Math.max(0, timeout - waited())
        // The first attempt did not get this part, and no time is left to ask for it again.
        if (left === 0) {
          if (unanswered && !blocking) throw unanswered
          throw new LockTimeoutError(part.key, timeout, holder, undefined, unanswered?.of())
        }
        const waits = { ...options, timeout: left, signal: end.signal }
        const lease = await part[blocking ? 'lock' : 'tryLock'](waits)
        if (!lease) throw new LockTimeoutError(part.key, timeout)
        leases.push(lease)
        end.follow(lease.signal)
      }
      return new MultiLease(leases)
    } catch (error) {
      // The leases are given back in the background, because a Redis that does not answer must not delay the caller
      // (I6).
      this.#giveBack(leases)
      const late = error instanceof LockConnectionError && refused && waited() >= timeout
      if (!blocking && (late || error instanceof LockTimeoutError)) return null
      if (!(error instanceof LockTimeoutError)) throw error
      throw error.after(waited())
    } finally {
      end.stop()
    }
  }

  /**
   * Makes a single attempt at each part, all at the same time. If the call makes no more than these attempts (`once`),
   * rejects if Redis does not answer for a part. Otherwise such a part counts as refused. Rejects with any other error.
   */
  async #tryAll(options: LockOptions, once: boolean): Promise<Tried[]> {
    this.#context.backend.together()
    const tries = await Promise.allSettled(
      this.#parts.map(part =>
        attempt(part, options).catch((error): Tried => {
          if (once || !(error instanceof LockConnectionError)) throw error
          return { part, lease: null, error }
        }),
      ),
    )
    const taken = tries.flatMap(tried => (tried.status === 'fulfilled' ? tried.value : []))
    const failed = tries.find(tried => tried.status === 'rejected')
    if (!failed) return taken
    for (const { part, lease } of taken) if (lease) part.giveUp(lease)
    throw failed.reason
  }

  /**
   * Gives back these leases of the first parts. The promises never reject. The caller need not wait for them: if it
   * takes a part again, Redis runs this release first.
   */
  #giveBack(leases: readonly Lease[]): Promise<boolean>[] {
    return leases.map((lease, i) => this.#parts[i]!.giveUp(lease))
  }
}

/** Runs a function while one or several locks are held, and always releases them afterwards. */
import { type LockClosedError, type LockLostError, traced } from './errors.ts'
import type { LockOptions } from './options.ts'
import { checkFn } from './settings.ts'

/** The arguments of `using` after the key. In a call without options, the function is the first of them. */
export type Using<Held, T, Options = LockOptions> =
  | [fn: (held: Held) => T | PromiseLike<T>]
  | [options: Options | undefined, fn: (held: Held) => T | PromiseLike<T>]

/** A lock, or several locks, that `using` can hold. */
export interface Holdable<Held extends { readonly signal: AbortSignal }, Options = LockOptions> {
  lock(options?: Options): Promise<Held>
  /** Runs `fn` in an async context in which calls on the held locks re-enter. */
  within<T>(held: Held, fn: () => T): T
  /** Releases the hold. Resolves to true if this call ended a hold that was not lost. Never rejects. */
  giveBack(held: Held): Promise<boolean>
}

export async function using<Held extends { readonly signal: AbortSignal }, T, Options>(
  lock: Holdable<Held, Options>,
  args: Using<Held, T, Options>,
): Promise<T> {
  const [options, fn] = args.length > 1 ? (args as [Options, (held: Held) => T]) : [undefined, args[0] as never]
  checkFn(fn)
  const held = await lock.lock(options)
  let result: T
  try {
    result = await lock.within(held, () => fn(held))
  } catch (error) {
    const loss: LockLostError | LockClosedError | undefined = held.signal.reason
    await lock.giveBack(held)
    // Work that honours the signal ends because the hold was lost, and most calls reject with an AbortError then.
    if (loss && (error === loss || (error as Error | undefined)?.name === 'AbortError')) throw loss.because(error)
    throw error
  }
  const live = await lock.giveBack(held)
  // The reason of the signal was made when the hold was lost, so its stack does not name the caller yet.
  if (!live && held.signal.aborted) throw traced(held.signal.reason)
  return result
}

/**
 * Returns a function that calls `run` instead of `fn`. `run` receives a function `call`, which executes `fn` with the
 * original `this` and arguments.
 */
export function wrapped<This, Args extends unknown[], R>(
  fn: (this: This, ...args: Args) => R | PromiseLike<R>,
  run: (call: () => R | PromiseLike<R>, self: This, args: Args) => Promise<R>,
): (this: This, ...args: Args) => Promise<R> {
  checkFn(fn)
  return function (...args) {
    return run(() => fn.apply(this, args), this, args)
  }
}

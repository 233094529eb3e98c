/**
 * A method that runs under a lock, said where the method is written.
 *
 * It is the decorator of the standard (TC39), which gets the method and a context and returns what stands in the
 * method's place; the older kind (`experimentalDecorators`) calls with other arguments, and is told so: NestJS, which
 * has only that, has its own decorator in src/nestjs/. All that happens in a call is `LockClient.wrap`: here is only
 * where the client and the lock come from.
 */
import type { LockClient } from './client.ts'
import type { MultiLock } from './compose/all.ts'
import { LockArgumentError } from './errors.ts'
import type { Lock } from './lock.ts'
import type { LockOptions } from './options.ts'

/**
 * Decorates a method that returns a promise: each call runs under the lock, as by `LockClient.wrap`. A call
 * inside another of the same mutex re-enters. It rejects with what the method rejects with, else LockLostError if the lock
 * was lost while it ran, else as `LockClient.lock`.
 *
 * The method is not given the lease. One that needs its token or signal asks for the lock once more, which re-enters:
 * `locks.using(key, lease => …)`.
 *
 * @param locks the client, or a function that finds it in the object whose method is called (in the class, if it is static)
 * @param lock the key of a mutex, or a lock of the client, or several; or a function that makes it: it has the `this` and the arguments of
 *   the call
 * @param options of each call, as that lock has them; times are ms. Default: the client's
 * @throws LockArgumentError where it stands before anything but a method and, if the client is given itself, on a bad lock
 *   or option; otherwise the call rejects with it
 * @since 0.1.0
 */
export function locked<
  This,
  // biome-ignore lint/suspicious/noExplicitAny: what ClassMethodDecoratorContext asks of a method, so nothing else passes.
  Method extends (this: This, ...args: any) => Promise<unknown>,
  L extends string | Lock | MultiLock = string,
>(
  locks: LockClient | ((self: This) => LockClient),
  lock: L | ((this: This, ...args: Parameters<Method>) => L),
  options?: L extends Lock<infer Options> ? Options : LockOptions,
): (method: Method, context: ClassMethodDecoratorContext<This, Method>) => Method {
  return (method, context) => {
    // For those whose compiler does not look.
    if (typeof context !== 'object') {
      const accepted = 'the context object of a standard decorator; compile without experimentalDecorators'
      throw new LockArgumentError('the context of @locked', context, accepted)
    }
    const { kind, name }: { kind: string; name: string | symbol } = context
    if (kind !== 'method') {
      throw new LockArgumentError(`the kind of ${String(name)}`, kind, '"method", because only methods can be @locked')
    }
    return lockedMethod(locks, lock, method, options) as Method
  }
}

/**
 * What stands in the place of `method`, whichever kind of decorator puts it there: the same name, as many parameters, and
 * each call under the lock. With a function for `locks`, what is wrong with the client, the lock or an option is found by
 * the call.
 */
export function lockedMethod<This, Args extends unknown[], R>(
  locks: LockClient | ((self: This) => LockClient),
  lock: string | Lock | MultiLock | ((this: This, ...args: Args) => string | Lock | MultiLock),
  method: (this: This, ...args: Args) => Promise<R>,
  options: LockOptions | undefined,
): (this: This, ...args: Args) => Promise<R> {
  const under = (client: LockClient) => {
    // Not by its class: a library that is decorated may have another copy of this package than its client.
    if (typeof client?.wrap !== 'function') throw new LockArgumentError('locks', client, 'a LockClient')
    return client.wrap(lock, method, options)
  }
  const run =
    typeof locks === 'function'
      ? async function (this: This, ...args: Args) {
          return under(locks(this)).apply(this, args)
        }
      : under(locks)
  return Object.defineProperties(run, { name: { value: method.name }, length: { value: method.length } })
}

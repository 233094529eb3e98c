/**
 * The decorator `@locked`, for methods that run under a lock.
 * It is a standard (TC39) decorator: it receives the method and a context, and returns the method's replacement. If the
 * code is compiled with `experimentalDecorators`, a decorator gets other arguments. `@locked` then throws an error that
 * explains this. NestJS supports only those older decorators, so src/nestjs/ has a decorator of its own.
 * `LockClient.wrap` does the work of each call; this file only finds the client and the lock.
 */
import type { LockClient } from './client.ts'
import type { MultiLock } from './compose/all.ts'
import { LockArgumentError } from './errors.ts'
import type { Lock } from './lock.ts'
import type { LockOptions } from './options.ts'

/**
 * Decorates a method that returns a promise: each call runs under the lock, as with `LockClient.wrap`. A call inside
 * another call under the same mutex re-enters. If the method fails, or the lock is lost while it runs, the call
 * rejects as `LockClient.using` does. If the lock is not granted, it rejects with the error of `LockClient.lock`.
 *
 * The method does not receive the lease. To get the lease's token or signal, the method takes the lock again with
 * `locks.using(key, lease => …)`. This call re-enters.
 * @param locks the client, or a function that returns the client. The function gets the object whose method is called,
 *   or the class if the method is static
 * @param lock the key of a mutex, a lock of the client, or a `MultiLock`; or a function that returns one of these. The
 *   function gets the `this` and the arguments of the call
 * @param options the options of each call, as the lock accepts them. Times are in ms. Default: the client's options
 * @throws LockArgumentError when `@locked` decorates anything but a method, or when the lock or an option is wrong. If
 *   `locks` is a function, a wrong lock or option is found later: each call rejects with LockArgumentError
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
    // This check is for callers without type checking.
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
 * Returns the replacement of `method`, for `@locked` and for `@Locked` of src/nestjs/. The replacement has the same
 * name and number of parameters, and runs each call under the lock. If `locks` is a function, a wrong client, lock or
 * option is found only when the method is called.
 */
export function lockedMethod<This, Args extends unknown[], R>(
  locks: LockClient | ((self: This) => LockClient),
  lock: string | Lock | MultiLock | ((this: This, ...args: Args) => string | Lock | MultiLock),
  method: (this: This, ...args: Args) => Promise<R>,
  options: LockOptions | undefined,
): (this: This, ...args: Args) => Promise<R> {
  const under = (client: LockClient) => {
    // `instanceof` would be wrong here: this decorator and the client may come from different copies of this package,
    // for example if a library uses the decorator.
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

/**
 * `@Locked`: the counterpart of src/locked.ts for TypeScript's older kind of decorators, the only kind that Nest
 * supports.
 *
 * A class is defined before any client exists, and one process may run several applications. So the decorator cannot
 * look a client up. Instead, it adds a property to the class, named by a symbol, as if the property had `@Inject`. Nest
 * injects the client into this property of each object. This works for controllers, for providers of every scope, and
 * for classes that inherit the method. If there is no client to inject, Nest refuses to start the application.
 */
import { Inject } from '@nestjs/common'
import 'reflect-metadata'
import type { LockClient } from '../client.ts'
import type { MultiLock } from '../compose/all.ts'
import { LockArgumentError } from '../errors.ts'
import type { Lock } from '../lock.ts'
import { lockedMethod } from '../locked.ts'
import { checkKey, type LockOptions } from '../options.ts'
import { getLocksToken } from './inject.ts'

/**
 * Options of `@Locked`: the options of `LockClient.lock`, and the name of the client. Times are in ms.
 * @since 0.2.0
 */
export interface LockedOptions extends LockOptions {
  /**
   * The client's `name`, as given to `LockModule.forRoot`.
   * @defaultValue the client without a name
   * @since 0.2.0
   */
  client?: string | undefined
}

/**
 * What `@Locked` returns: a decorator of methods that return a promise.
 * @since 0.2.0
 */
export type LockedDecorator<This, Args extends unknown[]> = <Method extends (...args: never[]) => Promise<unknown>>(
  target: This,
  name: string | symbol,
  // The method may have more parameters than the key function. Its first parameters must be those of the key function.
  descriptor: TypedPropertyDescriptor<Method> & (Parameters<Method> extends [...Args, ...unknown[]] ? unknown : never),
) => void

type AnyMethod = (this: object, ...args: unknown[]) => Promise<unknown>

/**
 * Decorates a method that returns a promise, in a provider or controller. Each call runs under the lock, which the
 * client of `LockModule` takes. A call inside another call under the same mutex re-enters. A call rejects with the
 * method's own error, if there is one. Otherwise it rejects with LockLostError if the lock was lost while the method
 * ran, or with the error of `LockClient.lock` if the lock was not granted.
 *
 * Other decorators, such as routes, guards, `@Cron` and `@OnEvent`, record metadata about the method. This metadata is
 * kept, in whatever order the decorators stand. The method does not receive the lease. To get the lease's token or
 * signal, the method takes the lock again with `locks.using`. This call re-enters.
 *
 * @param key the key of a mutex; or a function that returns a key, a lock of the client, or a `MultiLock`. The function
 *   gets the `this` and the arguments of the call
 * @param options the options of each call, as the lock accepts them
 * @throws LockArgumentError when `@Locked` decorates anything but an instance method, or when a fixed key is wrong. A
 *   wrong option is found later: each call rejects with LockArgumentError
 * @since 0.2.0
 */
export function Locked<This extends object, Args extends unknown[], L extends string | Lock | MultiLock = string>(
  key: string | ((this: This, ...args: Args) => L),
  options?: LockedOptions & (L extends Lock<infer Options> ? Options : LockOptions),
): LockedDecorator<This, Args> {
  const { client, ...terms }: LockedOptions = options ?? {}
  if (typeof key !== 'function') checkKey(key)
  return (target, name, descriptor) => {
    const method = methodOf(target, name, descriptor)
    const property = injectInto(target, client)
    const locks = (self: object) => injectedInto(self, property)
    const run = lockedMethod(locks, key as string | ((this: object, ...args: unknown[]) => L), method, terms)
    for (const each of Reflect.getOwnMetadataKeys(method)) {
      Reflect.defineMetadata(each, Reflect.getOwnMetadata(each, method), run)
    }
    Object.assign(descriptor, { value: run })
  }
}

/**
 * Checks what is decorated. This is for callers without type checking, and for code compiled with standard decorators.
 */
function methodOf(target: unknown, name: unknown, descriptor: PropertyDescriptor | undefined): AnyMethod {
  if (typeof name === 'object') {
    const accepted =
      '"legacy": set experimentalDecorators in tsconfig.json, or use the standard `locked` of redis-baton'
    throw new LockArgumentError('the kind of decorators around @Locked', 'standard', accepted)
  }
  if (typeof target === 'function') {
    throw new LockArgumentError(
      `@Locked static ${String(name)}`,
      target,
      'a method of instances, because Nest injects the client only into instances',
    )
  }
  if (typeof descriptor?.value !== 'function') {
    throw new LockArgumentError(`@Locked ${String(name)}`, descriptor?.value, 'a method')
  }
  return descriptor.value
}

/**
 * For each client name, the property in which objects keep the client of that name. Another copy of the package uses
 * other properties and other clients.
 */
const properties = new Map<string | undefined, symbol>()

/**
 * Makes Nest inject the client into objects of this class and its subclasses. Returns the name of the property that
 * gets the client.
 */
function injectInto(prototype: object, client: string | undefined): symbol {
  const which = client === undefined ? '' : `name: '${client}', `
  // Nest's error about a missing client contains this text. The usual cause is that LockModule is not imported.
  const property = properties.get(client) ?? Symbol(`LockClient of @Locked, from LockModule.forRoot({ ${which}redis })`)
  properties.set(client, property)
  if (!(property in prototype)) {
    Object.defineProperty(prototype, property, { value: undefined, writable: true })
    Inject(getLocksToken(client))(prototype, property)
  }
  return property
}

function injectedInto(self: object, property: symbol): LockClient {
  const client = (self as Record<symbol, LockClient | undefined>)[property]
  if (client) return client
  throw new LockArgumentError(
    `${property.description}`,
    client,
    `a client that Nest has injected; let Nest create the ${self.constructor.name} instead of calling its constructor`,
  )
}

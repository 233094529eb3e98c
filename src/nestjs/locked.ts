/**
 * `@Locked`: the counterpart of src/locked.ts for TypeScript's older kind of decorators, the only kind that Nest
 * supports.
 *
 * A class is defined before any client exists, and one process may run several applications. So the decorator cannot
 * look a client up. Instead, it adds a property to the class, and marks the property for injection, as `@Inject` does.
 * Nest then sets this property of each object to the client. The property's name is a symbol. This works for
 * controllers, for providers of every scope, and for classes that inherit the method. If there is no client to inject,
 * Nest refuses to start the application.
 */
import { Inject } from '@nestjs/common'
import 'reflect-metadata'
import type { LockClient } from '../client.ts'
import type { MultiLock } from '../compose/all.ts'
import { LockArgumentError } from '../errors.ts'
import type { Lock } from '../lock.ts'
import { lockedMethod } from '../locked.ts'
import type { LockOptions } from '../options.ts'
import { checkText } from '../settings.ts'
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
  // If `@Locked` gets a function that returns the key, the method's first parameters must be those of this function.
  // The method may have more.
  descriptor: TypedPropertyDescriptor<Method> & (Parameters<Method> extends [...Args, ...unknown[]] ? unknown : never),
) => void

type AnyMethod = (this: object, ...args: unknown[]) => Promise<unknown>

/**
 * Decorates a method that returns a promise, in a provider or controller. Each call runs under the lock, which the
 * client of `LockModule` takes. A call inside another call under the same mutex re-enters. If the method
 * fails, or the lock is lost while it runs, the call rejects as `LockClient.using` does. If the lock is not granted, it
 * rejects with the error of `LockClient.lock`.
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
  if (typeof key !== 'function') checkText('key', key)
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
 * Returns the decorated method. Throws if `@Locked` decorates anything else: the caller may have no type checking, or
 * the code may be compiled with standard decorators.
 */
function methodOf(target: unknown, name: unknown, descriptor: PropertyDescriptor | undefined): AnyMethod {
  if (typeof name === 'object') {
    const accepted =
      '"legacy": set experimentalDecorators in tsconfig.json, or use the standard decorator `locked` of redis-baton'
    throw new LockArgumentError('the kind of the decorator @Locked', 'standard', accepted)
  }
  if (typeof target === 'function') {
    throw new LockArgumentError(
      `@Locked ${String(name)}`,
      'static',
      'an instance method, because Nest injects the client only into instances',
    )
  }
  if (typeof descriptor?.value !== 'function') {
    throw new LockArgumentError(`@Locked ${String(name)}`, descriptor?.value, 'a method')
  }
  return descriptor.value
}

/**
 * Nest injects each client into a property whose name is a symbol. This map has that symbol for each client's name.
 * Each copy of this package has its own properties and its own clients.
 */
const properties = new Map<string | undefined, symbol>()

/**
 * Makes Nest inject the client into objects of this class and its subclasses. Returns the name of the property that
 * gets the client.
 */
function injectInto(prototype: object, client: string | undefined): symbol {
  const which = client === undefined ? '' : `name: '${client}', `
  // If Nest finds no client to inject, its error contains this text. The usual cause is that LockModule is not
  // imported.
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

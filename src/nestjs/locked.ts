/**
 * `@Locked`: the decorator of src/locked.ts for those who are limited to TypeScript's older kind, as Nest is.
 *
 * The class is written before any client is there, and one process may run several applications. So a client is not looked up:
 * Nest injects it into a property of each object, under a symbol, as it would by `@Inject` on that property. That holds for
 * controllers, for each scope of providers, and for classes that inherit the method; and where there is none to inject, Nest
 * refuses to start the application.
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
 * Options of `@Locked`: those of `LockClient.lock`, and which client it is. Times are ms.
 * @since 0.2.0
 */
export interface LockedOptions extends LockOptions {
  /**
   * The `name` of the client, as given to `LockModule.forRoot`.
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
  // The key is made of the first arguments of the method: it may not ask for others.
  descriptor: TypedPropertyDescriptor<Method> & (Parameters<Method> extends [...Args, ...unknown[]] ? unknown : never),
) => void

type AnyMethod = (this: object, ...args: unknown[]) => Promise<unknown>

/**
 * Decorates a method of a provider or controller that returns a promise: each call runs under the lock, by the client
 * of `LockModule`. A call inside another of the same mutex re-enters. It rejects with what the method rejects with, else
 * LockLostError if the lock was lost while it ran, else as `LockClient.lock`.
 *
 * What other decorators have recorded about the method is kept, wherever they stand: routes, guards, `@Cron`, `@OnEvent`.
 * The method is not given the lease. One that needs its token or signal asks for the lock once more, which re-enters.
 *
 * @param key of a mutex; or a function that makes it, or a lock of that client, or several: it has the `this` and the arguments of the call
 * @param options of each call, as that lock has them
 * @throws LockArgumentError where it stands before anything but a method of objects, and on a bad key; on a bad option, the
 *   call rejects with it
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

/** For those whose compiler does not look, or knows another kind of decorators. */
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
      'a method of instances, because Nest injects the client into those',
    )
  }
  if (typeof descriptor?.value !== 'function') {
    throw new LockArgumentError(`@Locked ${String(name)}`, descriptor?.value, 'a method')
  }
  return descriptor.value
}

/** The properties of the clients, by their names. Another copy of the package has others, as it has other clients. */
const properties = new Map<string | undefined, symbol>()

/** Has Nest inject the client into the objects of this class, and of its subclasses; the property where it will be. */
function injectInto(prototype: object, client: string | undefined): symbol {
  const which = client === undefined ? '' : `name: '${client}', `
  // Nest shows its text to whoever has not imported the module.
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
    `a client that Nest has injected; let Nest create the ${self.constructor.name}`,
  )
}

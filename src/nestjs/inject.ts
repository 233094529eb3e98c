/** Where Nest's container keeps the clients: under the class for the one without a name, else under a text. */
import { Inject, type InjectionToken } from '@nestjs/common'
import { LockClient } from '../client.ts'

/**
 * The token of a client in Nest's container, for `app.get`, `overrideProvider` and providers of your own.
 * @param name as given to `LockModule.forRoot`; without it, the token is the class `LockClient`
 * @since 0.2.0
 */
export function getLocksToken(name?: string): InjectionToken<LockClient> {
  return name === undefined ? LockClient : `redis-baton:${name}`
}

/**
 * Injects the `LockClient` of `LockModule` into a parameter of a constructor, or into a property.
 * @param name of the client, where it has one. Without it, a parameter of the type `LockClient` needs no decorator
 * @since 0.2.0
 */
export function InjectLocks(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getLocksToken(name))
}

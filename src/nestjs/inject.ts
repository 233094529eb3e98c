/**
 * The tokens of the clients in Nest's container: the class for the client without a name, a string for each other
 * client.
 */
import { Inject, type InjectionToken } from '@nestjs/common'
import { LockClient } from '../client.ts'

/**
 * Returns the token of a client in Nest's container, for `app.get`, `overrideProvider` and providers of your own.
 * @param name the client's name, as given to `LockModule.forRoot`. Without a name, the token is the class `LockClient`
 * @since 0.2.0
 */
export function getLocksToken(name?: string): InjectionToken<LockClient> {
  return name === undefined ? LockClient : `redis-baton:${name}`
}

/**
 * Injects the `LockClient` of `LockModule` into a parameter of a constructor, or into a property.
 * @param name the client's name, if it has one. Without a name, a parameter of the type `LockClient` needs no decorator
 * @since 0.2.0
 */
export function InjectLocks(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getLocksToken(name))
}

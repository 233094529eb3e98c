/**
 * The tokens under which Nest's container knows the clients. The client without a name has the class `LockClient` as
 * its token. Every other client has a string.
 */
import { Inject, type InjectionToken } from '@nestjs/common'
import { LockClient } from '../client.ts'

/**
 * Returns the token of a client in Nest's container, for `app.get`, for `overrideProvider` and for your own providers.
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

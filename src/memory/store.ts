/**
 * What the rest of the library knows of a store in memory. A client finds it by the symbol, and so also if another copy
 * of the package has made the store, as when a program uses both `import` and `require`.
 */
import type { EventEmitter } from 'eventemitter3'
import type { Backend } from '../backend.ts'
import type { Clock } from '../clock.ts'
import type { ClientEventMap } from '../events.ts'
import type { LinkListener } from '../redis/link.ts'
import type { Settings } from '../settings.ts'

export const MEMORY: unique symbol = Symbol.for('redis-baton.memory') as never

/** A client of a store. */
export type StoreClient = EventEmitter<ClientEventMap>

/**
 * A place for locks in the memory of this process, in the stead of a Redis. Made by `memory()`.
 * @since 0.2.0
 */
export interface MemoryStore {
  /**
   * Plays the loss of a lock: ends all holds of the key, of every kind of lock. Before it returns, each holder knows:
   * `held` is false, `signal` has aborted, and `lost` was emitted. Then the next waiter is granted the lock.
   * @param key 1 to 1024 UTF-8 bytes
   * @returns how many holds there were
   * @throws LockArgumentError when the key is wrong
   * @since 0.2.0
   */
  lose(key: string): number
  /**
   * Plays an outage: the client gets no answers and no messages until `reconnect`, and emits `disconnected`. A single
   * attempt rejects at once, a wait after `outageTimeout`. Holds are not renewed, and are lost when their leases end.
   * @param client a `LockClient` of this store. Default: all clients, also those that are made before `reconnect`
   * @throws LockArgumentError when `client` is no client of this store
   * @since 0.2.0
   */
  disconnect(client?: EventEmitter<ClientEventMap>): void
  /**
   * Ends what `disconnect` has begun. The client emits `reconnected`.
   * @param client a `LockClient` of this store. Default: all clients
   * @throws LockArgumentError when `client` is no client of this store
   * @since 0.2.0
   */
  reconnect(client?: EventEmitter<ClientEventMap>): void
  /** @internal */
  readonly [MEMORY]: Memory
}

/** What a client uses of its store. */
export interface Memory {
  readonly clock: Clock
  join(client: StoreClient, settings: Settings, listener: LinkListener): Backend
}

/** Returns whether the value is a store, made by any copy of the package. */
export function isMemory(value: unknown): value is MemoryStore {
  return typeof value === 'object' && value !== null && MEMORY in value
}

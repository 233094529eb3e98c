import type { HolderInfo, LockClosedError, LockLostError } from './errors.ts'
import type { Via } from './kind.ts'

/**
 * The events of a LockClient, for `on`, `once` and `off` of eventemitter3. Each is also published on
 * `node:diagnostics_channel` as `redis-baton:<event>`. A listener that throws surfaces as an uncaught exception of its
 * own; the lock goes on.
 * @since 0.1.0
 */
export interface ClientEvents {
  /** A call has been refused for the first time and waits. `position`: in the fair queue, from 1. @since 0.1.0 */
  waiting: { key: string; owner: string; position?: number; holder?: HolderInfo }
  /** A lock was granted, after `waited` ms. @since 0.1.0 */
  acquired: { key: string; owner: string; fencingToken: number; waited: number; via: Via }
  /** A lease was prolonged, by itself or by `lease.renew`. @since 0.1.0 */
  renewed: { key: string; fencingToken: number }
  /** A live hold was released, after `held` ms. @since 0.1.0 */
  released: { key: string; fencingToken: number; held: number }
  /** A hold ended without its release; with LockClosedError, because `close` ended it. @since 0.1.0 */
  lost: { key: string; fencingToken: number; error: LockLostError | LockClosedError }
  /** A connection of this client to Redis was lost; it is being re-established. @since 0.1.0 */
  disconnected: { error: Error }
  /** All connections of this client are there again. @since 0.1.0 */
  reconnected: Record<string, never>
  /** What no promise reports. Never thrown when nobody listens. @since 0.1.0 */
  error: { error: unknown }
}

/**
 * The same in the form that eventemitter3 wants: one argument each.
 * @since 0.1.0
 */
export type ClientEventMap = { [E in keyof ClientEvents]: [event: ClientEvents[E]] }

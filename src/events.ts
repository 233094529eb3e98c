import type { HolderInfo, LockClosedError, LockLostError } from './errors.ts'
import type { Via } from './kind.ts'

/**
 * The events of a LockClient, for `on`, `once` and `off` of eventemitter3. Each event is also published on
 * `node:diagnostics_channel` as `redis-baton:<event>`. If a listener throws, its error does not reach the client's own
 * code. The error is thrown later, as an uncaught exception of the process.
 * @since 0.1.0
 */
export interface ClientEvents {
  /**
   * A call has found the lock taken, and begins to wait. `position`: the call's place in the fair queue, from 1.
   * `expected`: in about how many ms the lock will be granted, if that can be estimated.
   * @since 0.1.0
   */
  waiting: { key: string; owner: string; position?: number; expected?: number; holder?: HolderInfo }
  /** A lock was granted, `waited` ms after the call. @since 0.1.0 */
  acquired: { key: string; owner: string; fencingToken: number; waited: number; via: Via }
  /** A lease was renewed, automatically or by `lease.renew`. @since 0.1.0 */
  renewed: { key: string; fencingToken: number }
  /** A lock was released before its lease ended, `held` ms after its grant. @since 0.1.0 */
  released: { key: string; fencingToken: number; held: number }
  /**
   * A hold ended before it was released. `error` is a LockClosedError if `close` ended the hold, otherwise a
   * LockLostError.
   * @since 0.1.0
   */
  lost: { key: string; fencingToken: number; error: LockLostError | LockClosedError }
  /**
   * A connection of this client to Redis was lost, or over a quorum, the connections to a majority of the servers. The
   * client is reconnecting. While the client neither holds nor waits, this is emitted only if the first attempt to
   * connect again fails.
   * @since 0.1.0
   */
  disconnected: { error: Error }
  /**
   * All connections of this client are up again, or over a quorum, the connections to a majority of the servers.
   * @since 0.1.0
   */
  reconnected: Record<string, never>
  /**
   * An error that no promise reports. Unlike Node's `error` event, it is not thrown if it has no listener.
   * @since 0.1.0
   */
  error: { error: Error }
}

/**
 * The events in the form that eventemitter3 expects: each event has one argument.
 * @since 0.1.0
 */
export type ClientEventMap = { [E in keyof ClientEvents]: [event: ClientEvents[E]] }

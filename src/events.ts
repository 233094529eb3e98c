import type { HolderInfo, LockLostError } from './errors.ts'
import type { Via } from './primitive.ts'

/** The events of a LockClient. Each is also published on `node:diagnostics_channel` as `redis-baton:<event>`. */
export interface ClientEvents {
  /** A call has been refused for the first time and waits. `position`: in the fair queue, from 1. */
  waiting: { key: string; owner: string; position?: number; holder?: HolderInfo }
  /** A lock was granted, after `waited` ms. */
  acquired: { key: string; owner: string; fencingToken: number; waited: number; via: Via }
  /** A lease was prolonged, by itself or by `lease.renew`. */
  renewed: { key: string; fencingToken: number }
  /** A live hold was released, after `held` ms. */
  released: { key: string; fencingToken: number; held: number }
  /** A hold ended without its release. */
  lost: { key: string; fencingToken: number; error: LockLostError }
  /** A connection of this client to Redis was lost; it is being re-established. */
  disconnected: { error: Error }
  /** All connections of this client are there again. */
  reconnected: Record<string, never>
  /** What no promise reports. Never thrown when nobody listens. */
  error: { error: unknown }
}

/** The same in the form that eventemitter3 wants: one argument each. */
export type ClientEventMap = { [E in keyof ClientEvents]: [event: ClientEvents[E]] }

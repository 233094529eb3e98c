/**
 * The interface between a session and its Redis. There are two implementations. redis/server.ts is for a single Redis.
 * compose/quorum/backend.ts is for a quorum, in which several independent servers act as one.
 */
import type { LockError } from './errors.ts'
import type { Channels, Kind, KindDefinition } from './kind.ts'
import type { Ids } from './redis/ids.ts'
import type { Keys } from './redis/keys.ts'

/** A kind of lock in one client, and the names of its locks. */
export interface Made<State> {
  readonly keys: Keys
  readonly kind: Kind<State>
}

export interface Backend {
  readonly ids: Ids
  /**
   * Whether each lock has an inbox of its own, as in a cluster. A holder must then subscribe to the lock's inbox to
   * receive messages about its hold.
   */
  readonly inboxPerLock: boolean
  /** Whether commands can be sent. In a quorum: whether commands can be sent to a majority of the servers. */
  readonly up: boolean
  /** Whether commands can be sent to at least one server, be it one whose votes do not count. */
  readonly reachable: boolean
  /**
   * When Redis last answered a call, on the clock that counts only the time in which this process ran; −∞: never. An
   * answer "not now" (loading, busy, moving a slot) does not count.
   */
  readonly answeredAt: number
  /**
   * Returns the error with which a connected Redis answers "not now" (loading, busy, moving a slot); undefined if it does
   * not. In a quorum: why too few servers can be used.
   */
  trouble(): Error | undefined
  open(): void
  close(): void
  /** Resolves when Redis has answered all requests that run in the background. Only `close` waits for this. */
  rest(): Promise<unknown>
  /**
   * The requests of this turn of the event loop that follow belong together: each server gets them in one write. So the
   * server usually runs them without a request of another client in between.
   */
  together(): void
  /** Makes this client's `Kind` from its definition. `warn` receives errors that no call reports. */
  make<State, S>(kind: KindDefinition<State, S>, warn: (error: LockError) => void): Made<State>
  channels(keys: Keys): Channels
  /**
   * Finds the locks of several kinds whose key matches the pattern. Looks only at names in Redis, so a result may be
   * something other than a lock. Yields pages of results; each result comes at most once.
   */
  list(kinds: readonly Keys[], pattern: string): AsyncGenerator<[kind: number, key: string][], void, undefined>
}

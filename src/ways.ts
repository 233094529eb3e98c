/**
 * The interface between a session and its Redis. There are two implementations: one for a single Redis
 * (redis/server.ts), and one for the independent servers of a quorum, which together act as one
 * (compose/quorum/quorum.ts).
 */
import type { LockError } from './errors.ts'
import type { Channels, Granted, Kind, KindDefinition, Names, ScriptSet } from './kind.ts'
import type { Ids } from './redis/ids.ts'
import type { Keys } from './redis/keys.ts'
import type { LinkListener } from './redis/link.ts'
import type { Calling } from './redis/rights.ts'

/** What a session receives from Redis. */
export interface WaysListener extends LinkListener {
  /** Called when a quorum has decided a grant. Its deadline is known, so Redis need not be asked for it. */
  won(id: string, grant: Granted, lock: string): void
}

/** A kind of lock in one client, and the names of its locks. */
export interface Made<State> {
  readonly keys: Keys
  readonly kind: Kind<State>
}

export interface Ways {
  readonly ids: Ids
  /**
   * Whether each lock has an inbox of its own (in a cluster). A holder must then subscribe to it to receive messages
   * about its hold.
   */
  readonly inboxPerLock: boolean
  /** Whether commands can be sent. In a quorum: to a majority of the servers. */
  readonly up: boolean
  /** How many calls Redis has answered other than by "not now". */
  readonly answers: number
  /** Why Redis says "not now" although it is connected; undefined: it does not say so. */
  readonly trouble: Error | undefined
  open(): void
  close(): void
  /** Resolves when Redis has answered all requests in the background. Only `close` waits for that. */
  rest(): Promise<unknown>
  /** Makes a kind of lock for this client. `warn` receives errors that no call reports. */
  make<State, S extends ScriptSet, N extends Names>(
    kind: KindDefinition<State, S, N>,
    warn: (error: LockError) => void,
  ): Made<State>
  channels(keys: Keys): Channels
  /**
   * Finds the locks of several kinds whose key matches the pattern. It looks only at names, so a result may not be a
   * lock. Yields each lock at most once, a page at a time.
   */
  list(kinds: readonly Keys[], pattern: string): AsyncGenerator<[kind: number, key: string][], void, undefined>
  /** Makes `look` check the rights that these kinds need. */
  need(kinds: readonly Calling[]): void
  /** Checks the servers that are connected now: the user's rights, and whether locks may be evicted. */
  look(): void
}

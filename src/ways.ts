/**
 * The ways between a client and its Redis, as a session sees them: those to one Redis (redis/server.ts), or to the independent servers of
 * a quorum (compose/quorum/quorum.ts), which together are one.
 */
import type { LockError } from './errors.ts'
import type { Channels, Granted, Kind, KindDefinition, Names, ScriptSet } from './kind.ts'
import type { Ids } from './redis/ids.ts'
import type { Keys } from './redis/keys.ts'
import type { LinkListener } from './redis/link.ts'
import type { Calling } from './redis/rights.ts'

/** What comes over the ways. */
export interface WaysListener extends LinkListener {
  /** A grant that is proven: of its deadline, too, nothing has to be asked. */
  won(id: string, grant: Granted, lock: string): void
}

/** A kind of lock, and the names of its locks. */
export interface Made<State> {
  readonly keys: Keys
  readonly kind: Kind<State>
}

export interface Ways {
  readonly ids: Ids
  /** Whether each lock has an inbox of its own, which a holder does not hear unless it subscribes. */
  readonly inboxPerLock: boolean
  /** Whether commands are answered. */
  readonly up: boolean
  /** To how many calls Redis has said more than "not now". */
  readonly answers: number
  /** Why nothing is answered although there is a connection; undefined: nothing has said so. */
  readonly trouble: Error | undefined
  open(): void
  close(): void
  /** Resolves when all has been answered that nobody waits for but `close`. */
  rest(): Promise<unknown>
  /** `warn`: for what no call reports. */
  make<State, S extends ScriptSet, N extends Names>(
    kind: KindDefinition<State, S, N>,
    warn: (error: LockError) => void,
  ): Made<State>
  channels(keys: Keys): Channels
  /** The locks of several kinds whose key matches the pattern, as far as their names tell; each at most once, a page at a time. */
  list(kinds: readonly Keys[], pattern: string): AsyncGenerator<[kind: number, key: string][], void, undefined>
  /** From now on each connection is looked at for the rights that these kinds need. */
  need(kinds: readonly Calling[]): void
  /** Looks at the servers that are connected now. */
  look(): void
}

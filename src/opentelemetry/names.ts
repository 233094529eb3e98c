/**
 * The names under which spans and metrics say what happened.
 *
 * Those that do not begin with `redis_baton` are of OpenTelemetry's semantic conventions, stable since their version 1.33.0.
 * These know no locks. docs/observability.md has tables of all names.
 */
import { LockClosedError, LockError, LockTimeoutError } from '../errors.ts'

/** Tells a backend the version of the conventions. */
export const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.33.0'

/** The name of our tracer and of our meter. */
export const SCOPE = 'redis-baton'

export const names = {
  system: 'db.system.name',
  operation: 'db.operation.name',
  errorType: 'error.type',
  key: 'redis_baton.key',
  kind: 'redis_baton.kind',
  mode: 'redis_baton.mode',
  keyGroup: 'redis_baton.key_group',
  owner: 'redis_baton.owner',
  token: 'redis_baton.fencing_token',
  via: 'redis_baton.via',
  outcome: 'redis_baton.outcome',
  holder: 'redis_baton.holder.label',
  position: 'redis_baton.queue.position',
} as const

/** How a call ended. Each value is an attribute of metrics, so they are few. */
export type CallOutcome = 'granted' | 'timeout' | 'refused' | 'aborted' | 'closed' | 'failed'

/** How a hold ended. `unconfirmed`: its release failed, or came so late that the lease had run out before Redis answered. */
export type HoldOutcome = 'released' | 'lost' | 'unconfirmed'

/** How a call ended that rejected; `signal` is its own. */
export function outcomeOf(error: unknown, signal: AbortSignal | undefined): CallOutcome {
  if (signal?.aborted && error === signal.reason) return 'aborted'
  if (error instanceof LockTimeoutError) return 'timeout'
  return error instanceof LockClosedError ? 'closed' : 'failed'
}

/** The classes of this package's errors are few; all else that may be thrown is one word, so that a metric can bear it. */
export function errorType(error: unknown): string {
  return error instanceof LockError ? error.name : '_OTHER'
}

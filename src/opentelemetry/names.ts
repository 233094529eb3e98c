/**
 * The names of attributes in spans and metrics.
 *
 * Names that begin with `redis_baton` are our own, because OpenTelemetry's semantic conventions have no names for
 * locks. All other names are from those conventions and have been stable since version 1.33.0. docs/observability.md
 * has tables of all names.
 */
import { LockClosedError, LockError, LockTimeoutError } from '../errors.ts'

/** The URL that says which version of the conventions the spans and metrics follow. */
export const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.33.0'

/** The name of our tracer and our meter. */
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

/**
 * How a call ended. This is an attribute of metrics, and each value adds a time series, so there must be few values.
 */
export type CallOutcome = 'granted' | 'timeout' | 'refused' | 'aborted' | 'closed' | 'failed'

/**
 * How a hold ended. `unconfirmed`: its release failed, or Redis answered the release only after the end of the lease.
 */
export type HoldOutcome = 'released' | 'lost' | 'unconfirmed'

/** Returns how a rejected call ended. `signal`: the call's `signal` option. */
export function outcomeOf(error: unknown, signal: AbortSignal | undefined): CallOutcome {
  if (signal?.aborted && error === signal.reason) return 'aborted'
  if (error instanceof LockTimeoutError) return 'timeout'
  return error instanceof LockClosedError ? 'closed' : 'failed'
}

/**
 * Returns the name of the error's class if the class is of this package, and `_OTHER` for every other error. The result
 * is an attribute of metrics, so it must have few values.
 */
export function errorType(error: unknown): string {
  return error instanceof LockError ? error.name : '_OTHER'
}

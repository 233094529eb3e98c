/**
 * The names of attributes in spans and metrics.
 *
 * Names that do not begin with `redis_baton` are from OpenTelemetry's semantic conventions, stable since version
 * 1.33.0. The conventions have no names for locks. docs/observability.md has tables of all names.
 */
import { LockClosedError, LockError, LockTimeoutError } from '../errors.ts'

/** Identifies the version of the conventions to a backend. */
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

/** How a call ended. There are few values, because each one is an attribute of metrics. */
export type CallOutcome = 'granted' | 'timeout' | 'refused' | 'aborted' | 'closed' | 'failed'

/** How a hold ended. `unconfirmed`: its release failed, or was answered only after the end of the lease. */
export type HoldOutcome = 'released' | 'lost' | 'unconfirmed'

/** Returns how a rejected call ended. `signal`: the signal of the call. */
export function outcomeOf(error: unknown, signal: AbortSignal | undefined): CallOutcome {
  if (signal?.aborted && error === signal.reason) return 'aborted'
  if (error instanceof LockTimeoutError) return 'timeout'
  return error instanceof LockClosedError ? 'closed' : 'failed'
}

/** Returns the class of an error of this package; `_OTHER` for every other error, so that the metric has few values. */
export function errorType(error: unknown): string {
  return error instanceof LockError ? error.name : '_OTHER'
}

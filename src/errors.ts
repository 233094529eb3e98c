/** The label of a holder and for how long it has held, as far as the last answer of Redis told. */
export interface HolderInfo {
  /** The `label` of the client that holds the lock. */
  readonly label: string
  /** How long it had held the lock when Redis last said so, in ms. */
  readonly heldFor: number
}

/** Base of all errors of this package. `code` is stable; `key` is the lock concerned, where there is one. */
export class LockError extends Error {
  override readonly name: string = 'LockError'
  readonly code: string
  readonly key: string | undefined

  constructor(code: string, message: string, key?: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.key = key
  }
}

/**
 * The wait exceeded `timeout`. `holder` and `position` say why, as far as Redis had told by then; `cause` is there if Redis
 * was out of reach.
 */
export class LockTimeoutError extends LockError {
  override readonly name = 'LockTimeoutError'
  /** How long the call waited, in ms. */
  readonly waited: number
  readonly holder: HolderInfo | undefined
  /** Place in the fair queue, from 1; undefined for a waiter that was not queued. */
  readonly position: number | undefined

  /** `cause`: why Redis was out of reach at the end, if it was. */
  constructor(key: string, waited: number, holder?: HolderInfo, position?: number, cause?: Error) {
    const place = position ? `, at position ${position} of the queue` : ''
    const by = holder ? `; held by ${holder.label} for ${Math.round(holder.heldFor)} ms` : ''
    const away = cause ? `; Redis is out of reach: ${cause.message}` : ''
    super(
      'ERR_LOCK_TIMEOUT',
      `lock "${key}" was not granted within ${Math.round(waited)} ms${place}${by}${away}`,
      key,
      cause,
    )
    this.waited = waited
    this.holder = holder
    this.position = position
  }
}

/** The hold ended without its release: it expired, was taken away, or Redis was out of reach until its lease had run out. */
export class LockLostError extends LockError {
  override readonly name = 'LockLostError'

  constructor(key: string, why: string, cause?: unknown) {
    super('ERR_LOCK_LOST', `lock "${key}" was lost: ${why}`, key, cause)
  }
}

/** Redis could not be reached, or refused. `cause` is the server's or the socket's own error. */
export class LockConnectionError extends LockError {
  override readonly name = 'LockConnectionError'

  readonly #what: string

  /** `what` happened, because of `cause`. */
  constructor(what: string, cause?: unknown, key?: string) {
    const reason = cause instanceof Error ? `: ${cause.message}` : ''
    super('ERR_LOCK_CONNECTION', `${what}${reason}`, key, cause)
    this.#what = what
  }

  /** The same error as the caller of a lock sees it: with the key, and the stack of the call. */
  of(key: string): LockConnectionError {
    return new LockConnectionError(this.#what, this.cause, key)
  }
}

/** The client was closed. */
export class LockClosedError extends LockError {
  override readonly name = 'LockClosedError'

  constructor(key?: string) {
    super('ERR_LOCK_CLOSED', 'the lock client is closed', key)
  }

  /** The same error as the caller of a lock sees it. */
  of(key: string): LockClosedError {
    return new LockClosedError(key)
  }
}

/** An error of the connection as the caller of a lock sees it: it says which lock it was about, and has the stack of the call. */
export function named(key: string, error: unknown): unknown {
  return error instanceof LockConnectionError || error instanceof LockClosedError ? error.of(key) : error
}

/** The same outcome, with errors that are named. */
export async function about<T>(key: string, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw named(key, error)
  }
}

/** A bad key or option, found before anything was sent. Names the option, the value and what is accepted. */
export class LockArgumentError extends LockError {
  override readonly name = 'LockArgumentError'
  readonly option: string
  readonly value: unknown
  readonly accepted: string

  constructor(option: string, value: unknown, accepted: string) {
    super('ERR_LOCK_ARGUMENT', `${option} is ${shown(value)}; accepted: ${accepted}`)
    this.option = option
    this.value = value
    this.accepted = accepted
  }
}

/** A value as a person would write it, cut to a length that fits in a message. */
function shown(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : describe(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}

function describe(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}

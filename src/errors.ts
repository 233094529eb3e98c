/**
 * The label of a holder, and for how long it has held as of now: in the moment in which the error or the event that has it
 * was made. It is who held by the last answer of Redis, with the time since then added; or, where this client has been
 * granted the lock in the meantime, its own. Absent where that holder is known to have released since.
 * @since 0.1.0
 */
export interface HolderInfo {
  /** The `label` of the call that holds the lock, or of its client. @since 0.1.0 */
  readonly label: string
  /** How long it has held the lock by now, in ms. @since 0.1.0 */
  readonly heldFor: number
}

/**
 * Each error has the name of its class under this symbol, by which another copy of the package knows it: the one that
 * `require` loads beside `import`, or another version's.
 */
const brand = Symbol.for('redis-baton.error')

/** `value instanceof this`, for an error of whichever copy. A class without a `kind` of its own is a user's: only its own are. */
function hasInstance(this: { readonly kind: string }, value: unknown): boolean {
  const kind = (value as { readonly [brand]?: string } | null | undefined)?.[brand]
  const known = kind !== undefined && Object.hasOwn(this, 'kind') && ['LockError', kind].includes(this.kind)
  return known || Function.prototype[Symbol.hasInstance].call(this, value)
}

/**
 * Base of all errors of this package: `error instanceof LockError` tells them from those of your own code, whichever copy of
 * the package has made them.
 * @since 0.1.0
 */
export class LockError extends Error {
  /** @internal */
  static readonly kind: string = 'LockError'
  /** @internal */
  static override readonly [Symbol.hasInstance] = hasInstance

  /** The name of the class. @since 0.1.0 */
  override readonly name: string
  /** Stable, for programs: `ERR_LOCK_…`. The message is for people, and may change. @since 0.1.0 */
  readonly code: string
  /** The key of the lock concerned; undefined where there is none. @since 0.1.0 */
  readonly key: string | undefined

  /**
   * The client makes them; you only where a test of yours needs one.
   * @param cause what led to it, as of any Error
   * @since 0.1.0
   */
  constructor(code: string, message: string, key?: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    const { kind } = new.target
    Object.defineProperty(this, brand, { value: kind })
    this.name = kind
    this.code = code
    this.key = key
  }
}

/**
 * The wait exceeded `timeout`: code `ERR_LOCK_TIMEOUT`. `holder` and `position` say why, as far as Redis had told by then;
 * `cause` is there if Redis was out of reach.
 * @since 0.1.0
 */
export class LockTimeoutError extends LockError {
  /** @internal */
  static override readonly kind = 'LockTimeoutError'

  /** The name of the class. @since 0.1.0 */
  declare readonly name: 'LockTimeoutError'
  /** How long the call waited, in ms. @since 0.1.0 */
  readonly waited: number
  /** Who holds the lock; undefined where that is not known. @since 0.1.0 */
  readonly holder: HolderInfo | undefined
  /** Place in the fair queue, from 1; undefined for a waiter that was not queued. @since 0.1.0 */
  readonly position: number | undefined

  /**
   * The client makes them; you only where a test of yours needs one.
   * @param waited in ms
   * @param cause why Redis was out of reach at the end, if it was
   * @since 0.1.0
   */
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

/**
 * The hold ended without its release: it expired, was taken away, or Redis was out of reach until its lease had run out.
 * Code `ERR_LOCK_LOST`.
 * @since 0.1.0
 */
export class LockLostError extends LockError {
  /** @internal */
  static override readonly kind = 'LockLostError'

  /** The name of the class. @since 0.1.0 */
  declare readonly name: 'LockLostError'

  /**
   * The client makes them; you only where a test of yours needs one.
   * @since 0.1.0
   */
  constructor(key: string, why: string, cause?: unknown) {
    super('ERR_LOCK_LOST', `lock "${key}" was lost: ${why}`, key, cause)
  }
}

/**
 * Redis could not be reached, or refused: code `ERR_LOCK_CONNECTION`. `cause` is the server's or the socket's own error.
 * @since 0.1.0
 */
export class LockConnectionError extends LockError {
  /** @internal */
  static override readonly kind = 'LockConnectionError'

  /** The name of the class. @since 0.1.0 */
  declare readonly name: 'LockConnectionError'

  readonly #what: string

  /**
   * The client makes them; you only where a test of yours needs one.
   * @param what happened, because of `cause`
   * @since 0.1.0
   */
  constructor(what: string, cause?: unknown, key?: string) {
    const reason = cause instanceof Error ? `: ${cause.message}` : ''
    super('ERR_LOCK_CONNECTION', `${prefixOf(key)}${what}${reason}`, key, cause)
    this.#what = what
  }

  /** The same error as the caller of a lock sees it: with the key, and the stack of the call. @internal */
  of(key: string): LockConnectionError {
    return new LockConnectionError(this.#what, this.cause, key)
  }
}

/**
 * The client was closed: code `ERR_LOCK_CLOSED`.
 * @since 0.1.0
 */
export class LockClosedError extends LockError {
  /** @internal */
  static override readonly kind = 'LockClosedError'

  /** The name of the class. @since 0.1.0 */
  declare readonly name: 'LockClosedError'

  /**
   * The client makes them; you only where a test of yours needs one.
   * @since 0.1.0
   */
  constructor(key?: string) {
    super('ERR_LOCK_CLOSED', `${prefixOf(key)}the lock client is closed`, key)
  }

  /** The same error as the caller of a lock sees it. @internal */
  of(key: string): LockClosedError {
    return new LockClosedError(key)
  }
}

/**
 * The call would wait for itself: its owner only reads, and asked to write. Code `ERR_LOCK_DEADLOCK`.
 * @since 0.2.0
 */
export class LockDeadlockError extends LockError {
  /** @internal */
  static override readonly kind = 'LockDeadlockError'

  /** The name of the class. @since 0.2.0 */
  declare readonly name: 'LockDeadlockError'
  /** The locks that are held and asked for. @since 0.2.0 */
  readonly keys: readonly string[]

  /**
   * The client makes them; you only where a test of yours needs one.
   * @since 0.2.0
   */
  constructor(key: string) {
    const why = 'its owner already holds the read lock, so the write lock would wait for itself'
    const todo = 'release the read lock first, or take the write lock from the start'
    super('ERR_LOCK_DEADLOCK', `lock "${key}": ${why}; ${todo}`, key)
    this.keys = [key]
  }
}

/** Where it is known which lock an error is about, the message begins with that. */
function prefixOf(key: string | undefined): string {
  return key === undefined ? '' : `lock "${key}": `
}

/** Why a call ends that had no connection: `error`, unless that says all there is to say. */
export function outOfReach(error: Error, what = 'Redis is out of reach'): LockConnectionError {
  return error instanceof LockConnectionError ? error : new LockConnectionError(what, error)
}

/** Whether a server has said no, or enough of a quorum have: whoever asks again is told the same. */
export function isRefusal({ cause }: LockConnectionError): boolean {
  if (cause instanceof AggregateError) return cause.errors.some(isRefusal)
  return cause instanceof Error && cause.name === 'ReplyError'
}

/** An error of the connection as the caller of a lock sees it: it says which lock it was about, and has the stack of the call. */
export function named(key: string, error: unknown): unknown {
  return error instanceof LockConnectionError || error instanceof LockClosedError ? error.of(key) : error
}

/** The same outcome, with errors that are named. */
export function about<T>(key: string, call: Promise<T>): Promise<T> {
  return call.catch(error => {
    throw named(key, error)
  })
}

/**
 * A bad key or option, found before anything was sent: code `ERR_LOCK_ARGUMENT`.
 * @since 0.1.0
 */
export class LockArgumentError extends LockError {
  /** @internal */
  static override readonly kind = 'LockArgumentError'

  /** The name of the class. @since 0.1.0 */
  declare readonly name: 'LockArgumentError'
  /** The option or argument that is wrong, by its name. @since 0.1.0 */
  readonly option: string
  /** What was given for it. @since 0.1.0 */
  readonly value: unknown
  /** What would have been right, in words. @since 0.1.0 */
  readonly accepted: string

  /**
   * The client makes them; you only where a test of yours needs one.
   * @since 0.1.0
   */
  constructor(option: string, value: unknown, accepted: string) {
    super('ERR_LOCK_ARGUMENT', `${option} is ${shown(value)}; expected ${accepted}`)
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

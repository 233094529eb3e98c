/**
 * The holder of a lock at the time of an error or event, as far as the client knows. Usually, Redis has named this
 * holder in its last answer. If a call of this client has got the lock after that answer, the holder is that call. If
 * the client knows that the holder has released the lock in the meantime, the error or event has no holder.
 * @since 0.1.0
 */
export interface HolderInfo {
  /** The `label` of the call that holds the lock, or of its client. @since 0.1.0 */
  readonly label: string
  /** How long the holder had held the lock at the time of the error or event, in ms. @since 0.1.0 */
  readonly heldFor: number
}

/**
 * Each error stores the name of its class under this symbol, so that other copies of the package recognise it. A
 * process has two copies if it loads the package with both `import` and `require`, or in two versions.
 */
const brand = Symbol.for('redis-baton.error')

/**
 * Implements `value instanceof this`, also for errors that another copy of the package made. A subclass that a user
 * defines has no `kind` of its own, and matches only its own instances.
 */
function hasInstance(this: { readonly kind: string }, value: unknown): boolean {
  const kind = (value as { readonly [brand]?: string } | null | undefined)?.[brand]
  const known = kind !== undefined && Object.hasOwn(this, 'kind') && ['LockError', kind].includes(this.kind)
  return known || Function.prototype[Symbol.hasInstance].call(this, value)
}

/**
 * The base class of all errors of this package. `error instanceof LockError` is true for each of them, also if another
 * copy of the package made the error.
 * @see https://github.com/redis-baton/redis-baton/blob/main/docs/errors.md
 * @since 0.1.0
 */
export class LockError extends Error {
  /** @internal */
  static readonly kind: string = 'LockError'
  /** @internal */
  static override readonly [Symbol.hasInstance] = hasInstance

  /** The name of the class. @since 0.1.0 */
  override readonly name: string
  /** A stable code for programs: `ERR_LOCK_…`. The message is for people, and may change. @since 0.1.0 */
  readonly code: string
  /** The key of the lock; undefined if the error does not concern one lock. @since 0.1.0 */
  readonly key: string | undefined

  /**
   * Errors are made by the client. Construct one only in a test.
   * @param cause what led to the error, as for any Error
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

/** What the message of a LockTimeoutError says besides its fields. */
export interface Details {
  /** What messages call a lock of this kind, such as "semaphore". */
  readonly noun?: string | undefined
  /** The words before the holder. Default: "held by". */
  readonly heldBy?: string | undefined
  /** For how many ms Redis has been out of reach; 0 if it is within reach. */
  readonly away: number
  /** In how many ms the lock was expected to be granted, by the last answer. */
  readonly expected?: number | undefined
}

/**
 * The wait exceeded `timeout`. Code `ERR_LOCK_TIMEOUT`. `holder` and `position` are from Redis's last answer. If Redis
 * was out of reach when the wait ended, or never answered the call, `cause` says why.
 * @see https://github.com/redis-baton/redis-baton/blob/main/docs/errors.md#err_lock_timeout
 * @since 0.1.0
 */
export class LockTimeoutError extends LockError {
  /** @internal */
  static override readonly kind = 'LockTimeoutError'

  /** The name of the class. @since 0.1.0 */
  declare readonly name: 'LockTimeoutError'
  /** How long the call waited, in ms. @since 0.1.0 */
  readonly waited: number
  /** The holder of the lock; undefined if the holder is not known. @since 0.1.0 */
  readonly holder: HolderInfo | undefined
  /** The waiter's place in the fair queue, from 1; undefined if the waiter was not queued. @since 0.1.0 */
  readonly position: number | undefined
  /**
   * In how many ms the lock would have been granted, as estimated at Redis's last answer; undefined if the waiter was not
   * queued, if too few holds have ended for an estimate, or if it has waited at its place for longer than was estimated.
   * @since 0.2.0
   */
  readonly expected: number | undefined
  readonly #details: Details

  /**
   * Errors are made by the client. Construct one only in a test.
   * @param waited how long the call waited, in ms
   * @param cause if Redis was out of reach when the wait ended, the reason
   * @since 0.1.0
   */
  constructor(key: string, waited: number, holder?: HolderInfo, position?: number, cause?: Error)
  /** @internal */
  constructor(key: string, waited: number, holder?: HolderInfo, position?: number, cause?: Error, details?: Details)
  constructor(
    key: string,
    waited: number,
    holder?: HolderInfo,
    position?: number,
    cause?: Error,
    details: Details = { away: 0 },
  ) {
    const { noun = 'lock', heldBy = 'held by', away, expected } = details
    const turn = expected === undefined ? '' : `, about ${Math.round(expected)} ms before its turn`
    const place = position ? `, at position ${position} of the queue${turn}` : ''
    const by = holder ? `; ${heldBy} ${holder.label} for ${Math.round(holder.heldFor)} ms` : ''
    const why = cause ? `; ${outOfReach(cause, outageOf(away)).message}` : ''
    super(
      'ERR_LOCK_TIMEOUT',
      `${noun} "${key}" was not granted within ${Math.round(waited)} ms${place}${by}${why}`,
      key,
      cause,
    )
    this.waited = waited
    this.holder = holder
    this.position = position
    this.expected = expected
    this.#details = details
  }

  /** Returns a copy of this error for a call that has waited for longer. @internal */
  after(waited: number): LockTimeoutError {
    const { key, holder, position, cause } = this
    return new LockTimeoutError(key as string, waited, holder, position, cause as Error | undefined, this.#details)
  }
}

/**
 * The hold ended before it was released: a forced release took it away, or its lease ended, for instance because Redis
 * was out of reach for too long. Code `ERR_LOCK_LOST`.
 * @see https://github.com/redis-baton/redis-baton/blob/main/docs/errors.md#err_lock_lost
 * @since 0.1.0
 */
export class LockLostError extends LockError {
  /** @internal */
  static override readonly kind = 'LockLostError'

  /** The name of the class. @since 0.1.0 */
  declare readonly name: 'LockLostError'
  readonly #why: string

  /**
   * Errors are made by the client. Construct one only in a test.
   * @since 0.1.0
   */
  constructor(key: string, why: string, cause?: unknown) {
    super('ERR_LOCK_LOST', `lock "${key}" was lost: ${why}`, key, cause)
    this.#why = why
  }

  /** Returns a copy of this error with another cause. @internal */
  because(cause: unknown): LockLostError {
    return new LockLostError(this.key as string, this.#why, cause)
  }
}

/**
 * Redis could not be reached, or refused the command. Code `ERR_LOCK_CONNECTION`. `cause` is the error of the server or
 * the socket.
 * @see https://github.com/redis-baton/redis-baton/blob/main/docs/errors.md#err_lock_connection
 * @since 0.1.0
 */
export class LockConnectionError extends LockError {
  /** @internal */
  static override readonly kind = 'LockConnectionError'

  /** The name of the class. @since 0.1.0 */
  declare readonly name: 'LockConnectionError'

  readonly #what: string

  /**
   * Errors are made by the client. Construct one only in a test.
   * @param what the message, without the key and the cause
   * @param cause why it happened
   * @since 0.1.0
   */
  constructor(what: string, cause?: unknown, key?: string) {
    const reason = isError(cause) ? `: ${cause.message}` : ''
    super('ERR_LOCK_CONNECTION', `${prefixOf(key)}${what}${reason}`, key, cause)
    this.#what = what
  }

  /** Returns a copy of this error that names the key of a lock, or no lock. @internal */
  of(key?: string): LockConnectionError {
    return new LockConnectionError(this.#what, this.cause, key)
  }
}

/**
 * The client was closed. Code `ERR_LOCK_CLOSED`.
 * @see https://github.com/redis-baton/redis-baton/blob/main/docs/errors.md#err_lock_closed
 * @since 0.1.0
 */
export class LockClosedError extends LockError {
  /** @internal */
  static override readonly kind = 'LockClosedError'

  /** The name of the class. @since 0.1.0 */
  declare readonly name: 'LockClosedError'

  /**
   * Errors are made by the client. Construct one only in a test.
   * @since 0.1.0
   */
  constructor(key?: string, cause?: unknown) {
    super('ERR_LOCK_CLOSED', `${prefixOf(key)}the lock client is closed`, key, cause)
  }

  /** Returns a copy of this error with another cause. @internal */
  because(cause: unknown): LockClosedError {
    return new LockClosedError(this.key, cause)
  }

  /** Returns a copy of this error that names the key of a lock, or no lock. @internal */
  of(key?: string): LockClosedError {
    return new LockClosedError(key)
  }
}

/**
 * The call would wait for itself: its owner asks for the write lock, but holds only the read lock of the same key. Code
 * `ERR_LOCK_DEADLOCK`.
 * @see https://github.com/redis-baton/redis-baton/blob/main/docs/errors.md#err_lock_deadlock
 * @since 0.2.0
 */
export class LockDeadlockError extends LockError {
  /** @internal */
  static override readonly kind = 'LockDeadlockError'

  /** The name of the class. @since 0.2.0 */
  declare readonly name: 'LockDeadlockError'
  /** The keys whose read lock the owner holds and whose write lock it asks for. @since 0.2.0 */
  readonly keys: readonly string[]

  /**
   * Errors are made by the client. Construct one only in a test.
   * @since 0.2.0
   */
  constructor(key: string) {
    const why = 'the owner of this call already holds the read lock, so a wait for the write lock would never end'
    const todo = 'release the read lock first, or take the write lock from the start'
    super('ERR_LOCK_DEADLOCK', `lock "${key}": ${why}; ${todo}`, key)
    this.keys = [key]
  }
}

/**
 * The option `maxWaiters` has kept the call from waiting: so many callers are queued already. Code
 * `ERR_LOCK_QUEUE_FULL`.
 * @see https://github.com/redis-baton/redis-baton/blob/main/docs/errors.md#err_lock_queue_full
 * @since 0.2.0
 */
export class LockQueueFullError extends LockError {
  /** @internal */
  static override readonly kind = 'LockQueueFullError'

  /** The name of the class. @since 0.2.0 */
  declare readonly name: 'LockQueueFullError'
  /** How many callers were queued. @since 0.2.0 */
  readonly waiters: number
  /**
   * For how many ms the call would have waited, as estimated from the last holds; undefined if too few holds have ended
   * for an estimate.
   * @since 0.2.0
   */
  readonly expected: number | undefined

  /**
   * Errors are made by the client. Construct one only in a test.
   * @since 0.2.0
   */
  constructor(key: string, waiters: number, expected?: number) {
    const wait = expected === undefined ? '' : `, and the wait would be about ${Math.round(expected)} ms`
    const queue = waiters === 1 ? '1 caller waits already' : `${waiters} callers wait already`
    super('ERR_LOCK_QUEUE_FULL', `lock "${key}" is taken: ${queue}${wait}; the limit is the option maxWaiters`, key)
    this.waiters = waiters
    this.expected = expected
  }
}

/**
 * Rejects with the error, after giving it the stack of the code that awaits the call. A call that fails resolves its
 * promise with this one. The error was made in a timer or a reply, where the stack does not name the caller. V8 finds
 * the caller by the promises that depend on the present one, as soon as these are linked. That takes two microtasks. So
 * calls that wait or succeed need not remember who made them. Call this only for a promise that is still pending.
 */
export async function rejection(error: unknown): Promise<never> {
  await null
  await null
  throw traced(error)
}

/** Gives an error of this package the present stack, and returns the error. Other errors keep their stacks. */
export function traced(error: unknown): unknown {
  if (error instanceof LockError) Error.captureStackTrace(error, traced)
  return error
}

/** Says that Redis has been out of reach for this many ms; 0 if it is not known since when. */
export function outageOf(away: number): string {
  return away > 0 ? `Redis has been out of reach for ${Math.round(away)} ms` : 'Redis is out of reach'
}

/**
 * Returns whether the value is an error of any realm. In Jest, the errors that Node itself makes are of another realm
 * than this package, so `instanceof Error` is false for them.
 */
export function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
}

function prefixOf(key: string | undefined): string {
  return key === undefined ? '' : `lock "${key}": `
}

/**
 * Returns the error of a call that had no connection: `error` itself if it is a LockConnectionError already, otherwise
 * a new LockConnectionError with `error` as its cause.
 */
export function outOfReach(error: Error, what = 'Redis is out of reach'): LockConnectionError {
  return error instanceof LockConnectionError ? error : new LockConnectionError(what, error)
}

/**
 * Returns whether the server refused the command. A retry of a refused command would be refused as well. For the error
 * of a quorum without a majority, returns whether at least one server refused the command.
 */
export function isRefusal({ cause }: LockConnectionError): boolean {
  if (cause instanceof AggregateError) return cause.errors.some(isRefusal)
  return isError(cause) && cause.name === 'ReplyError'
}

/**
 * Returns a copy of a connection or close error. The copy names the key, and has the stack of the call that rejects.
 * Returns other errors unchanged.
 */
export function named(key: string | undefined, error: unknown): unknown {
  return error instanceof LockConnectionError || error instanceof LockClosedError ? error.of(key) : error
}

/** Returns the same promise, but connection and close errors become copies that name the key. */
export function about<T>(key: string, call: Promise<T>): Promise<T> {
  return call.catch(error => rejection(named(key, error)))
}

/**
 * A bad key or option, found before anything was sent. Code `ERR_LOCK_ARGUMENT`.
 * @see https://github.com/redis-baton/redis-baton/blob/main/docs/errors.md#err_lock_argument
 * @since 0.1.0
 */
export class LockArgumentError extends LockError {
  /** @internal */
  static override readonly kind = 'LockArgumentError'

  /** The name of the class. @since 0.1.0 */
  declare readonly name: 'LockArgumentError'
  /** The name of the wrong option or argument. @since 0.1.0 */
  readonly option: string
  /** The value that was given. @since 0.1.0 */
  readonly value: unknown
  /** The values that are accepted, in words. @since 0.1.0 */
  readonly accepted: string

  /**
   * Errors are made by the client. Construct one only in a test.
   * @since 0.1.0
   */
  constructor(option: string, value: unknown, accepted: string) {
    super('ERR_LOCK_ARGUMENT', `${option} is ${shown(value, option)}; expected ${accepted}`)
    this.option = option
    this.value = value
    this.accepted = accepted
  }
}

/** Returns a short text for a value, for use in a message. */
function shown(value: unknown, option: string): string {
  // What was given as `redis` may contain a password. So the value is a description of it, in several words.
  const isText = typeof value === 'string' && !(option.startsWith('redis') && value.includes(' '))
  const text = isText ? JSON.stringify(value) : describe(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}

function describe(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null)
    return !Array.isArray(value) ? 'an object' : value.length > 0 ? 'an array' : 'an empty array'
  return String(value)
}

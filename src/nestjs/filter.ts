/** Answers HTTP requests that failed because a lock was not granted. */
import { type ArgumentsHost, Catch, HttpException, HttpStatus, Logger } from '@nestjs/common'
import { BaseExceptionFilter } from '@nestjs/core'
import { LockClosedError, LockConnectionError, LockError, LockQueueFullError, LockTimeoutError } from '../errors.ts'

/** The HTTP status "Locked" of RFC 4918. Nest has no name for this status. */
const LOCKED = 423

interface Answer {
  readonly status: number
  readonly error: string
  readonly message: string
  /** After how many seconds the request may be sent again. Only set if the request has had no effect. */
  readonly retryAfter?: number
}

const unavailable = { status: HttpStatus.SERVICE_UNAVAILABLE, error: 'Service Unavailable' }

/** Returns the answer for this error. Answers contain neither keys nor holders, because those are internal. */
function answerTo(error: LockError): Answer | undefined {
  // If Redis was out of reach when the time-out passed, the holder is unknown. So the answer is not "locked".
  if (error instanceof LockConnectionError || (error instanceof LockTimeoutError && error.cause)) {
    return { ...unavailable, message: 'The lock service cannot be reached', retryAfter: 5 }
  }
  if (error instanceof LockTimeoutError || error instanceof LockQueueFullError) {
    const message = 'Another request is working on this resource'
    const wait = error instanceof LockQueueFullError ? error.expected : undefined
    return { status: LOCKED, error: 'Locked', message, retryAfter: Math.ceil((wait || 1_000) / 1_000) }
  }
  // The answer has no retry time, because the request may already have done a part of its work.
  if (error instanceof LockClosedError) return { ...unavailable, message: 'This server is about to stop' }
  return undefined
}

/**
 * Answers HTTP requests that failed because of a lock: with 423 for LockTimeoutError and LockQueueFullError, and with 503
 * for LockConnectionError and LockClosedError. Other lock errors are left to Nest, which answers 500 and logs them. By
 * default, `LockModule` registers this filter for all routes. If the option `filter` of `LockModule` is false, the
 * filter can be put on single routes or controllers with `@UseFilters(LockExceptionFilter)`.
 *
 * The filter works with every HTTP adapter. Outside HTTP, the filter leaves the error as it is.
 * @since 0.2.0
 */
export class LockExceptionFilter extends BaseExceptionFilter<LockError> {
  readonly #logger = new Logger(LockExceptionFilter.name)

  /**
   * Answers the request. Nest calls this method.
   * @since 0.2.0
   */
  override catch(error: LockError, host: ArgumentsHost): void {
    if (host.getType() !== 'http') return
    const answer = answerTo(error)
    if (!answer) return super.catch(error, host)
    const { status, retryAfter } = answer
    if (status === HttpStatus.SERVICE_UNAVAILABLE) this.#logger.error(error.message)
    const server = this.applicationRef ?? this.httpAdapterHost?.httpAdapter
    const response = host.getArgByIndex(1)
    if (retryAfter && server && !server.isHeadersSent(response))
      server.setHeader(response, 'Retry-After', `${retryAfter}`)
    const body = HttpException.createBody(answer.message, answer.error, status)
    super.catch(new HttpException(body, status, { cause: error }) as unknown as LockError, host)
  }
}

Catch(LockError)(LockExceptionFilter)

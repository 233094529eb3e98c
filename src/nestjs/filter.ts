/** What a client of HTTP is told when a lock was not to be had. */
import { type ArgumentsHost, Catch, HttpException, HttpStatus, Logger } from '@nestjs/common'
import { BaseExceptionFilter } from '@nestjs/core'
import { LockClosedError, LockConnectionError, LockError, LockTimeoutError } from '../errors.ts'

/** RFC 4918; Nest has no name for it. */
const LOCKED = 423

interface Answer {
  readonly status: number
  readonly error: string
  readonly message: string
  /** After so many seconds the request may be sent again, because nothing of it has been done. */
  readonly retryAfter?: number
}

const unavailable = { status: HttpStatus.SERVICE_UNAVAILABLE, error: 'Service Unavailable' }

/** No answer names keys or holders: those are nobody's business outside. */
function answerTo(error: LockError): Answer | undefined {
  // A call whose time was over while Redis was away does not know whether anybody holds the lock.
  if (error instanceof LockConnectionError || (error instanceof LockTimeoutError && error.cause)) {
    return { ...unavailable, message: 'The lock service cannot be reached', retryAfter: 5 }
  }
  if (error instanceof LockTimeoutError) {
    return { status: LOCKED, error: 'Locked', message: 'Another request is working on this resource', retryAfter: 1 }
  }
  // It may have been at work when its time was over: it is not said that the request can be repeated.
  if (error instanceof LockClosedError) return { ...unavailable, message: 'This server is about to stop' }
  return undefined
}

/**
 * Answers HTTP requests that failed because of a lock: 423 for LockTimeoutError, 503 for LockConnectionError and
 * LockClosedError; all else is left to Nest, which answers 500 and logs it. `LockModule` registers it for all routes, unless
 * `filter` is false; then it can stand at a route or a controller, by `@UseFilters(LockExceptionFilter)`.
 *
 * It works with every HTTP adapter. Where there is no HTTP, the error stays as it is.
 * @since 0.2.0
 */
export class LockExceptionFilter extends BaseExceptionFilter<LockError> {
  readonly #logger = new Logger(LockExceptionFilter.name)

  /**
   * Called by Nest.
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

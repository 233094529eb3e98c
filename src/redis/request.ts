/** What the rest of the library passes to a connection, and what it receives. */
import type { Cluster, Redis } from 'ioredis'
import type { LockConnectionError } from '../errors.ts'

export interface Answer<T> {
  readonly reply: T
  /** When the answered request was sent, on the client's monotonic clock. */
  readonly sent: number
  /** Whether the same call was sent before with an unknown outcome. If so, its effect may be older than `sent`. */
  readonly repeated: boolean
}

/**
 * A request to Redis. Only one promise lies between a request and its answer, because each costs time on the hot path.
 */
export interface Request<T> {
  /** Sends the request. Must be repeatable. */
  send(redis: Redis | Cluster): Promise<unknown>
  /** Turns the reply into a result. */
  read(answer: Answer<unknown>): T | Promise<T>
  /**
   * Called when the server has refused the request without doing anything. Returns true if there is another way to ask;
   * `send` uses that from then on.
   */
  rephrase?(refusal: Error): boolean
  /**
   * Returns a more precise error than the connection has; or, if `server` must be asked for it, a promise that rejects
   * with it.
   */
  explain?(error: LockConnectionError, server?: Server): LockConnectionError | Promise<never>
}

/** Runs further commands on the same server. */
export interface Server {
  run<T>(send: (redis: Redis | Cluster) => Promise<T>): Promise<T>
}

/** The interface between a connection and the rest of the library. */
import type { Cluster, Redis } from 'ioredis'
import type { LockConnectionError } from '../errors.ts'

export interface Answer<T> {
  readonly reply: T
  /** When the request that got this answer was sent, on the client's monotonic clock. */
  readonly sent: number
  /**
   * Whether the same call was sent before and may have been executed then. If so, its effect may be older than `sent`.
   */
  readonly repeated: boolean
}

/** A request to Redis. Between a request and its answer there is only one promise, because each promise costs time. */
export interface Request<T> {
  /**
   * Sends the request. May be called again for the same request: sending twice must have the same effect as sending
   * once.
   */
  send(redis: Redis | Cluster): Promise<unknown>
  read(answer: Answer<unknown>): T | Promise<T>
  /**
   * Called when the server has refused the request without doing anything. May change what `send` sends. If the request
   * should be sent again, returns true.
   */
  rephrase?(refusal: Error): boolean
  /**
   * Returns an error that says more than the connection's error. If further commands to `server` are needed for this,
   * returns a promise that rejects with the error.
   */
  explain?(error: LockConnectionError, server?: Server): LockConnectionError | Promise<never>
}

/** Runs further commands on the server that has refused a request. */
export interface Server {
  run<T>(send: (redis: Redis | Cluster) => Promise<T>): Promise<T>
}

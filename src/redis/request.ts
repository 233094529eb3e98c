/** The interface between a connection and the rest of the library. */
import type { Cluster, Redis } from 'ioredis'
import type { LockConnectionError } from '../errors.ts'

export interface Answer<T> {
  readonly reply: T
  /** When the request that got this answer was sent, on the client's monotonic clock. */
  readonly sent: number
  /**
   * Whether the call was sent before, and may have been executed then. If so, it may have taken effect before `sent`.
   */
  readonly repeated: boolean
}

/** A request to Redis. Its steps are methods, not a chain of promises, because each promise costs time. */
export interface Request<T> {
  /** The arguments of `text`, for logs, traces and errors. */
  readonly args?: readonly string[]
  /** The lock that the request is about. Requests about one lock take effect in the order in which they were made. */
  readonly key?: string
  /** Returns an EVALSHA as it is written to the socket. Absent, or undefined: the request is sent by `send`. */
  text?(): string | undefined
  /**
   * Sends the request. May be called again for the same request: sending twice must have the same effect as sending
   * once.
   */
  send(redis: Redis | Cluster): Promise<unknown>
  read(answer: Answer<unknown>): T | Promise<T>
  /**
   * Called when the server has refused the request without doing anything. Returns true if the request should be sent
   * again. `send` may then send a different command.
   */
  rephrase?(refusal: Error): boolean
  /**
   * Returns the error for the caller, which may say more than `error`. If further commands must first be sent to
   * `server`, returns a promise that rejects with the caller's error.
   */
  explain?(error: LockConnectionError, server?: RefusingServer): LockConnectionError | Promise<never>
}

/** Runs further commands on the server that has refused a request. */
export interface RefusingServer {
  run<T>(send: (redis: Redis | Cluster) => Promise<T>): Promise<T>
}

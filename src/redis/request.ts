/** The interface between a connection and the rest of the library. */
import type { Cluster, Redis } from 'ioredis'
import type { LockConnectionError } from '../errors.ts'

export interface Answer<T> {
  readonly reply: T
  /** When the answered request was sent, on the client's monotonic clock. */
  readonly sent: number
  /** Whether an earlier sending of the same call may have been executed. If so, its effect may be older than `sent`. */
  readonly repeated: boolean
}

/** A request to Redis. There is only one promise between a request and its answer, because each one costs time. */
export interface Request<T> {
  /** Sends the request. Must be repeatable. */
  send(redis: Redis | Cluster): Promise<unknown>
  /** Turns the reply into a result. */
  read(answer: Answer<unknown>): T | Promise<T>
  /**
   * Called when the server has refused the request without doing anything. May change what `send` sends. Returns
   * whether to send again.
   */
  rephrase?(refusal: Error): boolean
  /**
   * Returns a more precise error than that of the connection. If `server` has to be asked for it, returns a promise
   * that rejects with it.
   */
  explain?(error: LockConnectionError, server?: Server): LockConnectionError | Promise<never>
}

/** Runs further commands on the same server. */
export interface Server {
  run<T>(send: (redis: Redis | Cluster) => Promise<T>): Promise<T>
}

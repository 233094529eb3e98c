/** What the rest of the library asks of a connection, and what it gets. */
import type { Cluster, Redis } from 'ioredis'
import type { LockConnectionError } from '../errors.ts'

export interface Answer<T> {
  readonly reply: T
  /** When the request that was answered left, on the client's monotonic clock. */
  readonly sent: number
  /** Whether an earlier sending of the same call had an unknown outcome: then its effect may be older than `sent`. */
  readonly repeated: boolean
}

/** What somebody asks of Redis. One promise stands between a request and its answer: each costs on the hot path. */
export interface Request<T> {
  /** Must be repeatable. */
  send(redis: Redis | Cluster): Promise<unknown>
  /** What the reply means. */
  read(answer: Answer<unknown>): T | Promise<T>
  /** Told that the server has refused it without doing anything. True: it has another way to ask, which `send` takes from now on. */
  rephrase?(refusal: Error): boolean
  /**
   * The error with which it ends, where there is more to say than the connection knows; or a promise that rejects with it, where
   * `server` has to be asked for it.
   */
  explain?(error: LockConnectionError, server?: Server): LockConnectionError | Promise<never>
}

/** Where something else can be asked. */
export interface Server {
  run<T>(send: (redis: Redis | Cluster) => Promise<T>): Promise<T>
}

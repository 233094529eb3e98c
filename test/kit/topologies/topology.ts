/**
 * Types for a topology: how the lock client reaches the servers, how a test inspects them without any limit on its
 * rights, and the servers themselves. Each topology is one file in this folder that exports a `Topology`; index.ts
 * lists them all.
 */
import type { ClusterOptions, RedisOptions } from 'ioredis'
import type { RunningServer } from '../../../local-redis/index.ts'

/** Options of an ioredis instance. `replyMapping` is not allowed, because it changes the types of replies. */
export type InstanceOptions = Omit<RedisOptions, 'replyMapping'>

/**
 * How to reach the servers. This is plain data, because the process that starts the servers passes it to the processes
 * that run the tests, and to their children. For a master behind sentinels, the kind is 'server', and the options
 * name the sentinels.
 */
export type Way =
  | PlainWay
  | { readonly kind: 'quorum'; readonly parts: readonly PlainWay[] }
  /** A store in the memory of the process that uses this way. */
  | { readonly kind: 'memory'; readonly store: string }

/** How to reach one server, one set of sentinels or one cluster. */
export type PlainWay =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'server'; readonly options: InstanceOptions }
  | {
      readonly kind: 'cluster'
      readonly nodes: readonly { readonly host: string; readonly port: number }[]
      readonly options: ClusterOptions
    }

export interface Ways {
  /** How the lock client reaches the servers, with no more rights than it needs. */
  readonly client: Way
  /**
   * Like `client`, but for lock clients whose `prefix` is not the default. Present only if the Redis user of `client`
   * may use no other prefix than the default.
   */
  readonly otherPrefix?: Way
  /**
   * Like `client`, but for an ioredis instance on which the application also sends commands of its own. Present only if
   * the Redis user of `client` may do nothing but what locks need.
   */
  readonly caller?: Way
  /** Like `client`, but with all rights. */
  readonly admin: Way
}

export interface Servers extends Ways {
  /** The servers that hold data, masters first. Sentinels are not included. */
  readonly data: readonly RunningServer[]
  /** Resolves when all servers have ended and their files are removed. */
  readonly stop: () => Promise<void>
}

export interface Topology {
  readonly name: string
  /**
   * Starts the servers, and resolves when a client may begin to work: slots are covered, replicas follow, sentinels
   * know each other. If the start fails, everything that was started is ended first. `args` are added to the command
   * line of each server that holds data.
   */
  start(args?: readonly string[]): Promise<Servers>
}

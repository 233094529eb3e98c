/**
 * What a topology is to the tests: a way for the lock client, a way with all rights to look at what it did, and the
 * servers themselves. Each is one file here that exports a `Topology`; index.ts has the table of all.
 */
import type { ClusterOptions, RedisOptions } from 'ioredis'
import type { RunningServer } from '../../../local-redis/index.ts'

/** What is set of an instance; how it gives replies is left as it is, for the types. */
export type InstanceOptions = Omit<RedisOptions, 'replyMapping'>

/**
 * A way to the servers, as plain data: it goes from the process that started them to those that run the tests and their
 * children. A master behind sentinels is a 'server', whose options name the sentinels.
 */
export type Way = PlainWay | { readonly kind: 'quorum'; readonly parts: readonly PlainWay[] }

/** One that leads to one server, one set of sentinels or one cluster. */
export type PlainWay =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'server'; readonly options: InstanceOptions }
  | {
      readonly kind: 'cluster'
      readonly nodes: readonly { readonly host: string; readonly port: number }[]
      readonly options: ClusterOptions
    }

export interface Ways {
  /** The lock client's, with no more rights than it needs. */
  readonly client: Way
  /** Where the rights of `client` end with the default prefix: the same for clients with another one. */
  readonly otherPrefix?: Way
  /** Where the rights of `client` end with what the locks need: those of an application that does more on its instance. */
  readonly caller?: Way
  /** With all rights. */
  readonly admin: Way
}

export interface Servers extends Ways {
  /** Those that hold data, masters first; not the sentinels. */
  readonly data: readonly RunningServer[]
  /** Resolves when all of them have ended and what they wrote is removed. */
  readonly stop: () => Promise<void>
}

export interface Topology {
  readonly name: string
  /**
   * Resolves when a client may begin to work: slots are covered, replicas follow, sentinels know each other. What was
   * started is ended where it rejects. `args` are added to the command line of each server that holds data.
   */
  start(args?: readonly string[]): Promise<Servers>
}

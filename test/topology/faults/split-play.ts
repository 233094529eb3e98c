/** Types and helpers for the parts of cluster-split.test.ts that differ between the kinds of locks. */
import type { Cluster } from 'ioredis'
import { Namespace } from '../../../src/redis/keys.ts'
import type { Executor, TextSettings } from '../../../src/redis/scripts.ts'
import type { Node } from '../../kit/topologies/redis-cluster.ts'
import type { Caller } from '../../lua/callers.ts'

/** Lease time in ms, longer than the whole test. */
export const LEASE = 600_000
export const terms = { lease: LEASE, ttl: LEASE }
export const settings: TextSettings = {
  cluster: true,
  inboxes: new Namespace('lock:', true).inboxes,
  // Longer than a lease, so that no release shortens the life of a lock's key, however long the play takes until then.
  tokenMemory: 2 * LEASE,
}

export interface Scene {
  readonly name: string
  /** Which of the lock's keys exist, for example 'lock' and 'queue'. `names` in `Stage` has their names in Redis. */
  readonly keys: readonly string[]
  readonly lapsed?: true
}

/** A lock in the state that a scene describes, and the lock's callers. */
export interface Stage {
  /** The names of all keys of the lock, whether they exist or not. */
  readonly names: Readonly<Record<string, string>>
  set(node: Node): Promise<void>
  /** Makes the call with this name. Resolves to the reply, without the parts that differ between runs. */
  call(name: string): Promise<unknown>
  /** Returns the contents of the lock's keys, without times. */
  content(redis: Cluster): Promise<unknown>
}

export interface Play {
  readonly kind: string
  readonly scenes: readonly Scene[]
  /** Names of all calls of this kind of lock. */
  readonly calls: readonly string[]
  stage(node: Node, executor: Executor, key: string, scene: Scene): Stage
  /**
   * Pairs of a scene and a call, such as 'held release'. While the slot moves, these calls are served if all keys of
   * the lock are on one node.
   */
  readonly wholeThough: readonly string[]
  /**
   * Pairs of a scene and a call, such as 'held release'. These calls are refused temporarily if the lock's keys are on
   * two nodes.
   */
  readonly putOff: readonly string[]
}

/**
 * Returns a function that replaces an entry by the name of a caller. The entry is from one of a lock's keys in Redis,
 * and begins with the id of this caller. In each stage, the callers have other ids, but the same names. So stages can
 * be compared by names.
 */
export function knownBy(...callers: readonly Caller[]): (entry: string) => string {
  const names = new Map(callers.map(({ id, name }, i) => [id, `${name} ${i}`]))
  return entry => names.get(entry.slice(0, 28)) ?? 'another'
}

/** What cluster-split.test.ts needs to test the locks of one kind. */
import type { Cluster } from 'ioredis'
import { Namespace } from '../../../src/redis/keys.ts'
import type { Executor, TextSettings } from '../../../src/redis/scripts.ts'
import type { Node } from '../../kit/topologies/redis-cluster.ts'
import type { Caller } from '../../lua/callers.ts'

/** In ms: long enough for the whole test. */
export const LEASE = 600_000
export const terms = { lease: LEASE, ttl: LEASE }
export const settings: TextSettings = {
  cluster: true,
  inboxes: new Namespace('lock:', true).inboxes,
  tokenMemory: LEASE,
}

export interface Scene {
  readonly name: string
  /** Which of the lock's keys exist, by their roles. */
  readonly keys: readonly string[]
  readonly lapsed?: true
}

/** A lock in a scene, and its callers. */
export interface Stage {
  /** The names of all its keys, whether they exist or not. */
  readonly names: Readonly<Record<string, string>>
  set(node: Node): Promise<void>
  /** Makes one of the calls. Resolves to the parts of the answer that are the same each time. */
  call(name: string): Promise<unknown>
  /** What the lock's keys record, without times. */
  content(redis: Cluster): Promise<unknown>
}

export interface Play {
  readonly kind: string
  readonly scenes: readonly Scene[]
  /** All calls of this kind. */
  readonly calls: readonly string[]
  stage(node: Node, executor: Executor, key: string, scene: Scene): Stage
  /** Scenes and calls that are served although the slot moves, if all keys are on one node. */
  readonly wholeThough: readonly string[]
  /** Scenes and calls that are put off if they are not. */
  readonly putOff: readonly string[]
}

/** Maps an entry of a key to the name of its caller, because ids differ from stage to stage. */
export function knownBy(...callers: readonly Caller[]): (entry: string) => string {
  const names = new Map(callers.map(({ id, name }, i) => [id, `${name} ${i}`]))
  return entry => names.get(entry.slice(0, 28)) ?? 'another'
}

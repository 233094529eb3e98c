/** What cluster-split.test.ts does with the locks of one kind. */
import type { Cluster } from 'ioredis'
import { Namespace } from '../../../src/redis/keys.ts'
import type { Executor, TextSettings } from '../../../src/redis/scripts.ts'
import type { Node } from '../../kit/topologies/redis-cluster.ts'
import type { Caller } from '../../lua/callers.ts'

/** Long enough for all of it, ms. */
export const LEASE = 600_000
export const terms = { lease: LEASE, ttl: LEASE }
export const settings: TextSettings = {
  cluster: true,
  inboxes: new Namespace('lock:', true).inboxes,
  tokenMemory: LEASE,
}

export interface Scene {
  readonly name: string
  /** Which keys of the lock are there, by what they are. */
  readonly keys: readonly string[]
  readonly lapsed?: true
}

/** A lock in a scene, and who has to do with it. */
export interface Stage {
  /** Of its keys, there or not. */
  readonly names: Readonly<Record<string, string>>
  set(node: Node): Promise<void>
  /** One of the calls that there are; what it was answered, as far as it is the same each time. */
  call(name: string): Promise<unknown>
  /** What is recorded: of whom, not when. */
  content(redis: Cluster): Promise<unknown>
}

export interface Play {
  readonly kind: string
  readonly scenes: readonly Scene[]
  /** Every one that there is. */
  readonly calls: readonly string[]
  stage(node: Node, executor: Executor, key: string, scene: Scene): Stage
  /** Scenes and calls that are served though the slot moves, where all keys are in one place. */
  readonly wholeThough: readonly string[]
  /** Scenes and calls that are put off where they are not. */
  readonly putOff: readonly string[]
}

/** Whose an entry of a key is: ids differ from stage to stage. */
export function knownBy(...callers: readonly Caller[]): (entry: string) => string {
  const names = new Map(callers.map(({ id, name }, i) => [id, `${name} ${i}`]))
  return entry => names.get(entry.slice(0, 28)) ?? 'another'
}

/** All rivals, and how their workers are started. An adapter imports its library only when its `open` is called. */
import { packageRoot } from '../../local-redis/package-root.ts'
import type { Rival } from '../contract.ts'
import { type Command, nodeWorker } from '../harness/crew.ts'
import {
  batonFair,
  batonFairMutex,
  batonFairQuorum,
  batonFairSingle,
  batonGroups,
  batonMixed,
  batonNoGroups,
  batonUnfair,
  batonUnfairMutex,
  batonUnfairQuorum,
  batonUnfairSingle,
} from './baton.ts'
import { bottleneck } from './bottleneck.ts'
import { bullmq } from './bullmq.ts'
import { etcd, etcdElection } from './etcd.ts'
import { floorBlpop, floorBroadcast, floorPublish, floorSet } from './floors.ts'
import { versionIn, versionOf as versionOfPackage } from './installed.ts'
import { ioredfour } from './ioredfour.ts'
import { liveMutex, liveMutexSocket } from './live-mutex.ts'
import { nodeRedisson, nodeRedissonStreams } from './node-redisson.ts'
import { postgres } from './postgres.ts'
import { redisMultiSemaphore, redisSemaphore } from './redis-semaphore.ts'
import {
  launch,
  redissonFairLock,
  redissonLock,
  redissonPermits,
  redissonReadWrite,
  redissonSemaphore,
  redissonVersion,
} from './redisson.ts'
import { redlock, redlock10ms } from './redlock.ts'
import {
  redlockQuorum,
  redlockQuorum10ms,
  sesamecareRedlockQuorum,
  sesamecareRedlockQuorum10ms,
} from './redlock-quorum.ts'
import {
  redlockUniversal,
  redlockUniversal10ms,
  redlockUniversalQuorum,
  redlockUniversalQuorum10ms,
} from './redlock-universal.ts'
import { sesamecareRedlock, sesamecareRedlock10ms } from './sesamecare-redlock.ts'
import { simpleRedisMutex } from './simple-redis-mutex.ts'
import { zookeeper } from './zookeeper.ts'

/** All rivals, in the order of the reports, which is also the order of the trials. */
export const rivals: readonly Rival[] = [
  batonFair,
  batonUnfair,
  batonMixed,
  batonFairMutex,
  batonUnfairMutex,
  batonFairSingle,
  batonUnfairSingle,
  batonFairQuorum,
  batonUnfairQuorum,
  batonGroups,
  batonNoGroups,
  floorPublish,
  floorBlpop,
  floorBroadcast,
  floorSet,
  redisSemaphore,
  redisMultiSemaphore,
  redlock,
  redlock10ms,
  sesamecareRedlock,
  sesamecareRedlock10ms,
  redlockUniversal,
  redlockUniversal10ms,
  redlockQuorum,
  redlockQuorum10ms,
  sesamecareRedlockQuorum,
  sesamecareRedlockQuorum10ms,
  redlockUniversalQuorum,
  redlockUniversalQuorum10ms,
  simpleRedisMutex,
  ioredfour,
  nodeRedisson,
  nodeRedissonStreams,
  redissonLock,
  redissonFairLock,
  redissonSemaphore,
  redissonPermits,
  redissonReadWrite,
  liveMutex,
  liveMutexSocket,
  bullmq,
  bottleneck,
  postgres,
  etcd,
  etcdElection,
  zookeeper,
]

/**
 * Returns the command that starts the rival's workers. `further`: a module with additional rivals, for tests. Workers
 * in Java ignore it.
 */
export async function workerOf({ runtime }: Rival, further?: string): Promise<Command> {
  return runtime === 'java' ? launch() : nodeWorker(further)
}

/** Returns the rival's version. Returns undefined if the rival has no package, or if its package is not installed. */
export async function versionOf({ kind, runtime, package: name }: Rival): Promise<string | undefined> {
  if (runtime === 'java') return redissonVersion()
  if (kind === 'baton') return versionIn(new URL('package.json', packageRoot))
  return name === undefined ? undefined : versionOfPackage(name)
}

/** All rivals, and what the runner has to know about running them. Adapters import their library when they are opened. */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Rival } from '../contract.ts'
import { type Command, nodeWorker } from '../crew.ts'
import { batonFair, batonUnfair } from './baton.ts'
import { floorBlpop, floorPublish, floorSet } from './floors.ts'
import { ioredfour } from './ioredfour.ts'
import { liveMutex, liveMutexSocket } from './live-mutex.ts'
import { nodeRedisson, nodeRedissonStreams } from './node-redisson.ts'
import { redisSemaphore } from './redis-semaphore.ts'
import { launch, redissonFairLock, redissonLock, redissonVersion } from './redisson.ts'
import { redlock, redlock10ms } from './redlock.ts'
import { redlockUniversal, redlockUniversal10ms } from './redlock-universal.ts'
import { sesamecareRedlock, sesamecareRedlock10ms } from './sesamecare-redlock.ts'
import { simpleRedisMutex } from './simple-redis-mutex.ts'

/** In the order of the reports and of the turns. */
export const rivals: readonly Rival[] = [
  batonFair,
  batonUnfair,
  floorPublish,
  floorBlpop,
  floorSet,
  redisSemaphore,
  redlock,
  redlock10ms,
  sesamecareRedlock,
  sesamecareRedlock10ms,
  redlockUniversal,
  redlockUniversal10ms,
  simpleRedisMutex,
  ioredfour,
  nodeRedisson,
  nodeRedissonStreams,
  redissonLock,
  redissonFairLock,
  liveMutex,
  liveMutexSocket,
]

/** How its workers are started; `further` is for those that Node runs. */
export async function workerOf({ runtime }: Rival, further?: string): Promise<Command> {
  return runtime === 'java' ? launch() : nodeWorker(further)
}

const require = createRequire(import.meta.url)

/** As installed; undefined where it has no package of Node's, or where it is not here. */
export async function versionOf({ kind, runtime, package: name }: Rival): Promise<string | undefined> {
  if (runtime === 'java') return redissonVersion()
  if (kind === 'baton') return versionIn(new URL('../../../package.json', import.meta.url))
  if (name === undefined) return undefined
  // Looked for in the folders: many packages do not export their package.json.
  for (const folder of require.resolve.paths(name) ?? []) {
    const version = await versionIn(join(folder, name, 'package.json'))
    if (version !== undefined) return version
  }
  return undefined
}

async function versionIn(file: string | URL): Promise<string | undefined> {
  try {
    return (JSON.parse(await readFile(file, 'utf8')) as { version?: string }).version
  } catch {
    return undefined
  }
}

/** Servers of a test's own, with what a row needs beyond `ownServer`. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { findServerSource, type RunningServer } from '../../../local-redis/index.ts'

/** A folder that is gone after the test. */
export async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'baton-fault-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

/** A server that works in this folder; stopped after the test. */
export async function serverIn(dir: string, ...args: string[]): Promise<RunningServer> {
  const source = await findServerSource()
  const server = await source.start({ args, dir })
  onTestFinished(() => server.stop())
  return server
}

/** A connection that asks whatever the state of the server, and reports by its promises only; closed after the test. */
export function bluntRedis(url: string): Redis {
  const redis = new Redis(url, { enableReadyCheck: false, retryStrategy: () => 20 })
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  return redis
}

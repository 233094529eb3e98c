/** One real Redis for all tests that can share one; each test keeps to keys of its own. */
import type { TestProject } from 'vitest/node'
import { obtainRedis } from '../../src/local-redis/index.ts'

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string
  }
}

export default async function setup(project: TestProject) {
  const redis = await obtainRedis({ announce: line => console.log(line) })
  project.provide('redisUrl', redis.url)
  return () => redis.stop()
}

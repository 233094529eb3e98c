import { type DynamicModule, Module, type ModuleMetadata, type Type } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { LockClient } from 'redis-baton'

export const redis = process.env['REDIS_URL'] ?? ''

let keys = 0
export const freshKey = () => `nest-case:${process.pid}:${++keys}`

/** Makes a new module class for each call. Otherwise Nest would consider all of them the same module. */
export function moduleWith(metadata: ModuleMetadata): Type | DynamicModule {
  class Root {}
  Module(metadata)(Root)
  return Root
}

/** Runs an application without HTTP until `use` has ended. */
export async function withApp<T>(
  metadata: ModuleMetadata,
  use: (app: Awaited<ReturnType<typeof NestFactory.createApplicationContext>>) => Promise<T>,
): Promise<T> {
  const options = { logger: false, abortOnError: false } as const
  const app = await NestFactory.createApplicationContext(moduleWith(metadata), options)
  try {
    return await use(app)
  } finally {
    await app.close()
  }
}

/** Collects the keys of this client's grants from now on. */
export function granted(locks: LockClient): string[] {
  const seen: string[] = []
  locks.on('acquired', ({ key }) => seen.push(key))
  return seen
}

import { type DynamicModule, Module, type ModuleMetadata, type Type } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { LockClient } from 'redis-baton'

export const redis = process.env['REDIS_URL'] ?? ''

let keys = 0
export const freshKey = () => `nest-case:${process.pid}:${++keys}`

/** A module of its own for each call, or Nest would take them for one. */
export function moduleWith(metadata: ModuleMetadata): Type | DynamicModule {
  class Root {}
  Module(metadata)(Root)
  return Root
}

/** Runs an application without HTTP; it is over when `use` is. */
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

/** The keys of grants of this client, from now on. */
export function granted(locks: LockClient): string[] {
  const seen: string[] = []
  locks.on('acquired', ({ key }) => seen.push(key))
  return seen
}

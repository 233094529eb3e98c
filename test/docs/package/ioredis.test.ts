/**
 * Tests the package with ioredis 5, with ioredis 6, and without ioredis, in a user's folder that contains nothing else.
 */
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { runNode } from '../../kit/program.ts'
import { freshKey, redisUrl } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { root } from './imports.ts'

const at = (path: string) => fileURLToPath(new URL(path, root))

/**
 * Installs the package with its dependencies. `ioredis` is the name under which the wanted version is installed in this
 * project.
 */
async function furnish(folder: string, ioredis?: string): Promise<void> {
  const place = (name: string) => join(folder, 'node_modules', name)
  const packages = ['eventemitter3', 'p-timeout', '@types/node', '@opentelemetry/api']
  const links = [...packages.map(name => [name, name] as const), ...(ioredis ? [['ioredis', ioredis] as const] : [])]
  for (const [name, from] of links) {
    await mkdir(dirname(place(name)), { recursive: true })
    await symlink(at(`node_modules/${from}`), place(name))
  }
  for (const part of ['package.json', 'dist']) await cp(at(part), join(place('redis-baton'), part), { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
}

const consumer = `
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { LockClient } from 'redis-baton'
import { instrument } from 'redis-baton/opentelemetry'

const options: Omit<RedisOptions, 'replyMapping'> = { host: 'x', lazyConnect: true }
const redis = new Redis(options)
const cluster = new Cluster([{ port: 1 }], { lazyConnect: true })
instrument(new LockClient(redis), { links: { redis: cluster } })
new LockClient(cluster)
new LockClient(options)
// @ts-expect-error not one of its options
new LockClient({ hst: 'x' })
`

/**
 * A program that makes a lock client from a URL, from options and from a connection. It locks with each client, and
 * reports the major version of ioredis that made the connections.
 */
const program = `
import { Redis } from 'ioredis'
import { LockClient } from 'redis-baton'

const [url, key] = process.argv.slice(2)
const { hostname: host, port } = new URL(url)
const redis = new Redis(url, { lazyConnect: true })
for (const source of [url, { host, port: Number(port) }, redis]) {
  const locks = new LockClient(source)
  console.log(await locks.using(key, lease => lease.held))
  await locks.close()
}
console.log(redis.status, redis.options.protocol ?? 2)
`

describe.each([
  ['5', 'ioredis-5', 2],
  ['6', 'ioredis', 3],
] as const)('with ioredis %s alone', (_, name, protocol) => {
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(await realpath(tmpdir()), 'redis-baton-ioredis-'))
    await furnish(folder, name)
    await writeFile(join(folder, 'consumer.ts'), consumer)
    await writeFile(join(folder, 'program.js'), program)
    return () => rm(folder, { recursive: true, force: true })
  })

  test('a URL, options and an instance lock', async () => {
    const { code, output, errors } = await runNode(['program.js', redisUrl(), freshKey()], { cwd: folder })
    expect(code, errors).toBe(0)
    expect(output.trim().split('\n')).toEqual(['true', 'true', 'true', `wait ${protocol}`])
  })
})

describe('without ioredis', () => {
  test('a URL is refused with what to install; an instance from elsewhere and a store in memory lock', async () => {
    const folder = await emptyFolder()
    await furnish(folder)
    const elsewhere = createRequire(import.meta.url).resolve('ioredis-5')
    await writeFile(
      join(folder, 'program.js'),
      `import { createRequire } from 'node:module'
      import { LockClient, LockError } from 'redis-baton'
      import { memory } from 'redis-baton/memory'
      const { Redis } = createRequire(import.meta.url)(${JSON.stringify(elsewhere)})
      const [url, key] = process.argv.slice(2)
      try {
        new LockClient(url)
      } catch (error) {
        console.log(error instanceof LockError, error.message, error.cause.code)
      }
      for (const source of [new Redis(url, { lazyConnect: true }), memory()]) {
        const locks = new LockClient(source)
        console.log(await locks.using(key, lease => lease.held))
        await locks.close()
      }`,
    )
    const { code, output, errors } = await runNode(['program.js', redisUrl(), freshKey()], { cwd: folder })
    expect(code, errors).toBe(0)
    const [told, ...held] = output.trim().split('\n')
    expect(told).toMatch(/^true .*npm install ioredis.* MODULE_NOT_FOUND$/)
    expect(held).toEqual(['true', 'true'])
  })
})

import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { chooseSource, NoRedisError } from '../../../local-redis/choose.ts'
import { fromDistribution } from '../../../local-redis/debian.ts'
import { obtainRedis } from '../../../local-redis/index.ts'
import { onPath } from '../../../local-redis/path.ts'
import { ask } from './ask.ts'
import { binaryIn, runChild } from './child.ts'

const local = await chooseSource([onPath(), fromDistribution()]).catch(() => undefined)

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'baton-test-'))
})
afterEach(() => rm(folder, { recursive: true }))

async function program(name: string, script: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`)
  await chmod(join(folder, name), 0o755)
}

describe('REDIS_URL', () => {
  afterEach(() => {
    vi.unstubAllEnvs()
  })

  test('is used as it is, and its secrets are not announced', async () => {
    const url = 'rediss://alice:swordfish@redis.example:7000/2?password=swordfish'
    vi.stubEnv('REDIS_URL', url)
    const lines: string[] = []
    const redis = await obtainRedis({ announce: line => lines.push(line) })
    expect(redis.url).toBe(url)
    expect(lines).toEqual(['Redis: the server that REDIS_URL names, rediss://redis.example:7000/2'])
    await redis.stop()
  })

  test('an invalid one is an error that does not quote it', async () => {
    vi.stubEnv('REDIS_URL', 'redis:/:swordfish@redis.example')
    const error = await obtainRedis().catch((error: Error) => error)
    expect(String(error)).toContain('REDIS_URL')
    expect(String(error)).not.toContain('swordfish')
  })
})

test('without REDIS_URL a server is started, announced in one line, and stopped', { timeout: 300_000 }, async () => {
  const child = runChild('obtain.ts', [], { REDIS_URL: '' })
  const line = String((await child.lines.next()).value)
  const url = String((await child.lines.next()).value)
  expect(line).toMatch(/^Redis: .*, started on redis:\/\/127\.0\.0\.1:\d+$/)
  expect(line.endsWith(url)).toBe(true)
  expect(await child.ended).toEqual({ code: 0, signal: null })
  expect(await ask(Number(new URL(url).port), 'PING')).toBeUndefined()
})

describe('the PATH', () => {
  test.skipIf(!local)('gives the server found on it', async () => {
    const binary = binaryIn(local!.description)
    // A server that was unpacked from a package needs the libraries of that package. An installed server ignores them.
    const libraries = join(dirname(binary), '..', 'lib')
    const path = `LD_LIBRARY_PATH=$(echo ${libraries}/*-linux-gnu* | tr ' ' :)`
    await program('valkey-server', `${path} exec ${binary} "$@"`)

    const source = await chooseSource([onPath({ PATH: folder })])
    expect(source.kind).toBe('path')
    expect(source.description).toMatch(/^(redis|valkey)-server \d+\.\d+\.\d+ from the PATH/)
    const server = await source.start()
    expect(await ask(server.port, 'PING')).toBe('+PONG')
    await server.stop()
  })

  test('with a program that is not a server continues with the next option', async () => {
    await program('redis-server', 'echo something else')
    expect(await onPath({ PATH: folder }).find()).toEqual({
      unavailable: expect.stringContaining('is not a Redis or Valkey server'),
    })
  })
})

test('a named image is used, or nothing is: here no engine answers', async () => {
  const missing = { BATON_REDIS_IMAGE: 'redis-baton/none:0', DOCKER_HOST: `unix://${join(folder, 'none.sock')}` }
  const child = runChild('obtain.ts', [], { REDIS_URL: '', ...missing })
  expect((await child.lines.next()).done).toBe(true)
  expect((await child.ended).code).toBe(1)
})

test('with no option left the error lists what was tried and what to install', async () => {
  const error = await chooseSource([
    onPath({ PATH: folder }),
    fromDistribution({ PATH: folder }),
    { name: 'third', find: () => Promise.reject(new Error('the reason of the third')) },
  ]).catch((error: Error) => error)
  expect(error).toBeInstanceOf(NoRedisError)
  expect(error).toMatchObject({ code: 'NO_REDIS' })
  const { message } = error as NoRedisError
  expect(message).toContain('PATH: no redis-server or valkey-server')
  expect(message).toContain('distribution package: ')
  expect(message).toContain('third: the reason of the third')
  expect(message).toContain('apt install redis-server')
  expect(message).toContain('REDIS_URL')
})

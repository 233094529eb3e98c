import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromDistribution } from '../../../local-redis/debian.ts'
import { eventually } from './ask.ts'
import { binaryIn, runChild } from './child.ts'

const isWorkshop = (name: string) => name.includes('.building-')

/** False if the system is not Debian, or if its package tools or the network are missing. */
const available =
  'source' in
  (await fromDistribution()
    .find()
    .catch(() => ({})))

describe.skipIf(!available)('the cache of the distribution package', { timeout: 300_000 }, () => {
  let cache: string
  beforeAll(async () => {
    cache = await mkdtemp(join(tmpdir(), 'baton-test-'))
  })
  afterAll(() => rm(cache, { recursive: true }))

  async function use(): Promise<string> {
    const child = runChild('unpack.ts', [], { BATON_CACHE: cache })
    const line = String((await child.lines.next()).value)
    expect(await child.ended).toEqual({ code: 0, signal: null })
    return binaryIn(line)
  }

  test('is filled once by processes that come at the same time', async () => {
    const [one, two, three] = await Promise.all([use(), use(), use()])
    expect(one.startsWith(cache)).toBe(true)
    expect(two).toBe(one)
    expect(three).toBe(one)
    // One entry is the folder of the unpacked package, and the other is its lock file. No temporary folder is left.
    expect(await readdir(join(cache, 'redis'))).toHaveLength(2)
  })

  test('is used again as it is', async () => {
    const before = await stat(await use())
    const after = await stat(await use())
    expect(after.ino).toBe(before.ino)
  })

  test('is rebuilt when its server does not run', async () => {
    const binary = await use()
    await writeFile(binary, '#!/bin/sh\nexit 1\n')
    expect(await use()).toBe(binary)
    expect((await stat(binary)).size).toBeGreaterThan(100)
  })

  test('a tree left half done by a killed process does no harm', async () => {
    await rm(join(cache, 'redis'), { recursive: true })
    const child = runChild('unpack.ts', [], { BATON_CACHE: cache })
    const workshops = async () => (await readdir(join(cache, 'redis')).catch(() => [])).filter(isWorkshop)
    expect(await eventually(async () => (await workshops()).length > 0)).toBe(true)
    child.process.kill('SIGKILL')
    await child.ended
    expect(await workshops()).toHaveLength(1)
    await use()
    expect(await workshops()).toHaveLength(0)
  })
})

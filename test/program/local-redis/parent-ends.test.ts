import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chooseSource } from '../../../local-redis/choose.ts'
import { fromDistribution } from '../../../local-redis/debian.ts'
import { onPath } from '../../../local-redis/path.ts'
import { ask, eventually } from './ask.ts'
import { runChild } from './child.ts'

/**
 * A source that starts servers as child processes. Servers in containers are not tested here, because Testcontainers
 * removes them.
 */
const source = await chooseSource([onPath(), fromDistribution()]).catch(() => undefined)

describe.skipIf(!source)('no server is left', { timeout: 60_000 }, () => {
  let temporary: string

  beforeAll(async () => {
    temporary = await mkdtemp(join(tmpdir(), 'baton-test-'))
  })

  afterAll(() => rm(temporary, { recursive: true }))

  /** Lists only the servers' folders, because tsx also has a folder in TMPDIR. */
  const serverFolders = async () => (await readdir(temporary)).filter(name => name.startsWith('baton-redis-'))

  async function nothingIsLeft(port: number): Promise<void> {
    expect(await eventually(async () => (await ask(port, 'PING')) === undefined)).toBe(true)
    expect(await eventually(async () => (await serverFolders()).length === 0)).toBe(true)
  }

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL'] as const)('by a process that receives %s', async signal => {
    const child = runChild('hold-server.ts', ['wait'], { TMPDIR: temporary })
    const port = Number((await child.lines.next()).value)
    expect(await ask(port, 'PING')).toBe('+PONG')
    expect(await serverFolders()).toHaveLength(1)

    child.process.kill(signal)
    expect(await child.ended).toEqual({ code: null, signal })
    await nothingIsLeft(port)
  })

  test.each([
    ['finishes without stopping its server', 'finish', 0],
    ['calls process.exit', 'exit', 0],
  ])('by a process that %s', async (_, deed, code) => {
    const child = runChild('hold-server.ts', [deed], { TMPDIR: temporary })
    const port = Number((await child.lines.next()).value)
    expect(await child.ended).toEqual({ code, signal: null })
    await nothingIsLeft(port)
  })
})

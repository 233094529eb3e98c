import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  findServerSource,
  type RunningServer,
  type ServerSource,
  type StartOptions,
} from '../../../local-redis/index.ts'
import { ask } from './ask.ts'

/** Time limit for starting a server, in ms. The first time, a package or an image may have to be downloaded. */
const fetching = 300_000

describe('a server', { timeout: 60_000 }, () => {
  let temporary: string
  let source: ServerSource
  const started: RunningServer[] = []

  async function start(options?: StartOptions): Promise<RunningServer> {
    const server = await source.start(options)
    started.push(server)
    return server
  }

  beforeAll(async () => {
    source = await findServerSource()
    temporary = await mkdtemp(join(tmpdir(), 'baton-test-'))
    // Servers put their files in this folder, so the test sees which files a server leaves behind.
    vi.stubEnv('TMPDIR', temporary)
  }, fetching)

  afterEach(async () => {
    await Promise.all(started.splice(0).map(server => server.stop()))
    expect(await readdir(temporary)).toEqual([])
  })

  afterAll(async () => {
    vi.unstubAllEnvs()
    await rm(temporary, { recursive: true })
  })

  test('answers, and is gone after stop', async () => {
    const server = await start()
    expect(server.url).toBe(`redis://127.0.0.1:${server.port}`)
    expect(await ask(server.port, 'PING')).toBe('+PONG')

    await server.stop()
    expect(await ask(server.port, 'PING')).toBeUndefined()
    if (server.pid !== undefined) expect(() => process.kill(server.pid!, 0)).toThrow('ESRCH')
    expect(await readdir(temporary)).toEqual([])
    await server.stop()
  })

  test('listens on a port of its own, never on 6379', async () => {
    const servers = await Promise.all([start(), start(), start()])
    const ports = servers.map(server => server.port)
    expect(new Set(ports).size).toBe(3)
    expect(ports).not.toContain(6379)
    await expect(start({ port: 6379 })).rejects.toThrow('6379')
    await expect(start({ args: ['--port', '6379'] })).rejects.toThrow('port')
  })

  test('that cannot start reports why', async () => {
    await expect(start({ args: ['--no-such-option', '1'] })).rejects.toThrow(/no-such-option/)
  })

  test('is refused a port that is taken, and reports that', async () => {
    const squatter = createServer()
    await new Promise<void>(resolve => squatter.listen(0, '127.0.0.1', resolve))
    const { port } = squatter.address() as { port: number }
    try {
      await expect(start({ port })).rejects.toThrow(/already/)
    } finally {
      squatter.close()
    }
  })

  test('is not confused with another server on its port', async () => {
    const first = await start()
    await expect(start({ port: first.port })).rejects.toThrow(/another server|already/)
    expect(await ask(first.port, 'PING')).toBe('+PONG')
  })

  test('killed and restarted is empty and on the same port', async () => {
    const server = await start({ args: ['--databases', '3'] })
    await ask(server.port, 'SET key value')
    await server.kill()
    expect(await ask(server.port, 'PING')).toBeUndefined()

    await server.restart()
    expect(await ask(server.port, 'DBSIZE')).toBe(':0')
    expect(await ask(server.port, 'SELECT 3')).toContain('-ERR')

    await ask(server.port, 'SET key value')
    await server.restart({ args: ['--databases', '4'] })
    expect(await ask(server.port, 'DBSIZE')).toBe(':0')
    expect(await ask(server.port, 'SELECT 3')).toBe('+OK')
  })

  test('leaves a folder that was given to it', async ({ skip }) => {
    skip(source.kind === 'container', 'a container has no folder of this machine')
    const dir = join(temporary, 'given')
    await mkdir(dir)
    const server = await start({ dir, args: ['--appendonly', 'yes'] })
    await server.stop()
    expect(await readdir(dir)).toContain('appendonlydir')
    await rm(dir, { recursive: true })
  })
})

/**
 * Checks that the server and Node have the versions that the matrix requested. Writes both versions into the test
 * report, from which the matrix reads them.
 */
import { expect, test } from 'vitest'
import { ownServer, plainRedis } from '../../kit/redis.ts'

declare module 'vitest' {
  interface TaskMeta {
    server?: string
    node?: string
  }
}

/** Returns the server's name and version as it reports them, for example "Valkey 9.1.2". */
async function said(url?: string): Promise<string> {
  const info = await plainRedis(url).info('server')
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1]
  const valkey = field('valkey_version')
  return valkey ? `Valkey ${valkey}` : `Redis ${field('redis_version')}`
}

/**
 * Returns a pattern that matches each version that begins with the requested version. If 7.0 is requested, 7.0.15
 * matches. If no version is requested, every version matches.
 */
function asked(variable: string): RegExp {
  const value = process.env[variable]
  return value ? new RegExp(`^${value.replaceAll('.', '\\.')}\\.`) : /^(Redis|Valkey|Node) \d+\.\d+\.\d+/
}

test('the servers have the requested version: the shared one, and those of a test', async ({ task }) => {
  const shared = await said()
  task.meta.server = shared
  expect(shared).toMatch(asked('BATON_EXPECT_SERVER'))
  expect(await said((await ownServer()).url)).toBe(shared)
})

test('Node has the requested version', ({ task }) => {
  const node = `Node ${process.versions.node}`
  task.meta.node = node
  expect(node).toMatch(asked('BATON_EXPECT_NODE'))
})

/**
 * The versions of the server and of Node in a test run, as they report them. The matrix reads these from the test
 * report.
 */
import { expect, test } from 'vitest'
import { ownServer, plainRedis } from '../../kit/redis.ts'

declare module 'vitest' {
  interface TaskMeta {
    server?: string
    node?: string
  }
}

/** The server's name and version as it reports them, for instance "Valkey 9.1.2". */
async function said(url?: string): Promise<string> {
  const info = await plainRedis(url).info('server')
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1]
  const valkey = field('valkey_version')
  return valkey ? `Valkey ${valkey}` : `Redis ${field('redis_version')}`
}

/**
 * Matches a version that begins with the requested one: 7.0.15 matches 7.0. If no version was requested, any version
 * matches.
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

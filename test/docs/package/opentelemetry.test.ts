/** OpenTelemetry is optional: for users who do not have it, the package works, and loads nothing of OpenTelemetry. */
import { describe, expect, test } from 'vitest'
import { runNode } from '../../kit/program.ts'
import { redisUrl } from '../../kit/redis.ts'
import { importGraph, reachable } from './imports.ts'
import { needed, projectWith } from './project-with.ts'

const lockOnce = `
  import { LockClient } from 'redis-baton'
  const locks = new LockClient(process.argv[1])
  console.log(await locks.using('opentelemetry-test', lease => lease.via))
  await locks.close()
`

describe('without @opentelemetry/api', () => {
  test('the lock works, and modules that need the API say so', async () => {
    const cwd = await projectWith(needed)
    const run = (code: string) => runNode(['--input-type=module', '--eval', code, redisUrl()], { cwd })
    const lock = await run(lockOnce)
    expect(lock.errors).toBe('')
    expect(lock).toMatchObject({ code: 0, output: 'immediate\n' })

    const { code, errors } = await run(`await import('redis-baton/opentelemetry')`)
    expect(code).not.toBe(0)
    expect(errors).toContain(`Cannot find package '@opentelemetry/api'`)
  }, 70_000)
})

describe('with it', () => {
  test('the subpath instruments the client of the main entry', async () => {
    const cwd = await projectWith([...needed, '@opentelemetry/api'])
    const code = `
      import { instrument } from 'redis-baton/opentelemetry'
      ${lockOnce.replace('console.log', 'const { disable } = instrument(locks); console.log')}
      disable()
    `
    const ended = await runNode(['--input-type=module', '--eval', code, redisUrl()], { cwd })
    expect(ended.errors).toBe('')
    expect(ended).toMatchObject({ code: 0, output: 'immediate\n' })
  }, 70_000)
})

test('no other part of the package imports the API, not even for a type', async () => {
  const graph = await importGraph()
  const isOurs = (file: string) => file.startsWith('src/opentelemetry/') || file.startsWith('@opentelemetry/')
  const others = [...graph].filter(([file, imported]) => !isOurs(file) && imported.some(isOurs)).map(([file]) => file)
  expect(others).toEqual([])
  expect([...reachable(graph, 'src/index.ts').keys()].filter(isOurs)).toEqual([])
  expect([...reachable(graph, 'src/opentelemetry/index.ts').keys()]).toContain('@opentelemetry/api')
})

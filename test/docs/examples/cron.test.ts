/** Tests examples/cron.ts, which is run as cron would start it on two machines in the same minute. */
import { expect, test } from 'vitest'
import { example, runNode } from '../../kit/program.ts'
import { Scene } from './scene.ts'

const scene = new Scene()

/** Runs the example, which must succeed. Returns what it prints about the report of this night. */
async function run(night: string): Promise<string> {
  const { code, output, errors } = await runNode(example('cron.ts', night), { env: { REDIS_URL: scene.url } })
  expect(code, errors).toBe(0)
  return output.trim()
}

test('one of two machines does the work, whether they start together or one after the other', async () => {
  const both = await Promise.all([run('2030-01-01'), run('2030-01-01')])
  expect(both).toContain('2030-01-01: written')
  expect(both.filter(line => line !== '2030-01-01: written')).toEqual([
    expect.stringMatching(/^2030-01-01: (done already|the other machine is at it)$/),
  ])
  expect(await run('2030-01-01')).toBe('2030-01-01: done already')
  expect(await scene.redis.hkeys('example:reports')).toEqual(['token', '2030-01-01'])
  await scene.expectNothingLeft()
}, 70_000)

test('while another machine works, the program ends without waiting', async () => {
  await using _held = await scene.locks.lock('example:nightly-report')
  expect(await run('2030-01-02')).toBe('2030-01-02: the other machine is at it')
  expect(await scene.redis.hexists('example:reports', '2030-01-02')).toBe(0)
}, 70_000)

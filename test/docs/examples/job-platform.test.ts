/** examples/job-platform.ts: four processes run the jobs of three tenants, with groups and without. */
import { expect, test } from 'vitest'
import { example, runNode } from '../../kit/program.ts'
import { Scene } from './scene.ts'

const scene = new Scene()

/** Reads the numbers in a line: jobs, ms, most jobs at a time, most of one tenant, number and ms of each small tenant. */
function numbersIn(line: string): number[] {
  return (line.match(/\d+/g) ?? []).map(Number)
}

test('with groups, both limits hold, and small tenants do not wait for the large one', async () => {
  const { code, output, errors } = await runNode(example('job-platform.ts'), { env: { REDIS_URL: scene.url } })
  expect(code, errors).toBe(0)
  const lines = output.trim().split('\n')
  expect(lines.map(line => line.split(':', 1)[0])).toEqual(['groups', 'plain'])
  const [groups, plain] = lines.map(numbersIn)
  for (const [jobs, , atATime] of [groups!, plain!]) {
    expect(jobs).toBe(1_021)
    expect(atATime).toBeLessThanOrEqual(8)
  }
  const [, , , ofOneTenant, medium, , single] = groups!
  expect(ofOneTenant).toBe(3)
  expect(medium).toBeLessThan(200)
  expect(single).toBeLessThan(30)
  expect(plain![4]).toBeGreaterThan(1_000)
  expect(plain![6]).toBeGreaterThan(1_000)
  await scene.expectNothingLeft()
}, 300_000)

/**
 * examples/api-quota.ts: three processes share a quota of five concurrent calls. One process is killed while it uses
 * two of the five.
 */
import { expect, test } from 'vitest'
import { eventually } from '../../kit/time.ts'
import { Scene } from './scene.ts'

const scene = new Scene()

interface Line {
  readonly name: string
  readonly begins: boolean
  readonly id: string
  readonly weight: number
}

async function log(): Promise<Line[]> {
  const lines = await scene.redis.lrange('example:api', 0, -1)
  return lines.map(line => {
    const [name, phase, id, weight] = line.split(' ') as [string, string, string, string]
    return { name, begins: phase === 'begin', id, weight: Number(weight) }
  })
}

/** Returns how many calls were under way after each line of the log. */
function underWay(lines: readonly Line[]): number[] {
  let sum = 0
  return lines.map(({ begins, weight }) => {
    sum += begins ? weight : -weight
    return sum
  })
}

test('never more than five calls, even while a killed process counts for two; five again when its lease has ended', async () => {
  const start = (NAME: string, CALL_MS = '50', CALLS = '4') =>
    scene.start('api-quota.ts', { NAME, CALL_MS, CALLS, LEASE_MS: '1500' })
  // Process c begins a report: a call of 60 s that counts as two calls. The test kills the process before the report
  // ends.
  const doomed = start('c', '60000', '1')
  await eventually(async () => (await log()).some(({ name, weight }) => name === 'c' && weight === 2), 15_000)
  const [a, b] = [start('a'), start('b')]
  await eventually(async () => (await log()).length > 20, 15_000)
  const before = await log()
  await doomed.end('SIGKILL')
  const killed = new Set((await log()).filter(({ name }) => name === 'c').map(({ id }) => id))

  const semaphore = scene.locks.semaphore('example:api-quota', 5)
  await eventually(async () => {
    const lines = (await log()).filter(({ id }) => !killed.has(id))
    return Math.max(0, ...underWay(lines)) === 5 && lines.length > 60
  }, 20_000)
  expect(Math.max(...underWay(before))).toBe(5)

  expect(await Promise.all([a.end('SIGTERM'), b.end('SIGTERM')])).toEqual([0, 0])
  const lines = (await log()).filter(({ id }) => !killed.has(id))
  expect(Math.max(...underWay(lines))).toBe(5)
  expect(underWay(lines).at(-1)).toBe(0)
  // A report counts as two calls, so it has to wait for two free permits at once. Processes a and b have each completed
  // a report, although ordinary calls kept coming.
  for (const name of ['a', 'b']) {
    expect(
      lines.some(line => line.name === name && line.weight === 2 && !line.begins),
      name,
    ).toBe(true)
  }
  expect(await semaphore.inspect()).toMatchObject({ locked: false, taken: 0, waiters: [] })
}, 60_000)

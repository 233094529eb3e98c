/** Tests that processes that constantly want the same lock take turns, even without a queue. */
import { expect, test } from 'vitest'
import { Crew } from '../../kit/crew.ts'
import { eventually } from '../../kit/time.ts'

/** Number of grants at the beginning that the test ignores, because not all processes take part yet. */
const beginning = 30
const turns = 240

/**
 * Each process holds the lock for `hold` ms and one round trip. `rounds` is the number of calls of each process. This
 * number is larger than the test needs, so that no process ends early.
 */
const order = { hold: 5, rounds: beginning + turns }

test('three processes with a caller each share the lock', async () => {
  const crew = await Crew.hire(order, order, order)
  for (const worker of crew.workers) worker.go()
  const written = await eventually(async () => {
    const entries = await crew.written()
    return entries.length >= beginning + turns ? entries.slice(beginning, beginning + turns) : undefined
  }, 30_000)
  const holders = new Map<string, string>()
  for (const event of await crew.history()) if (event.kind === 'grant') holders.set(event.id, event.worker)
  const held = written!.map(([, id]) => holders.get(id))
  const shares = crew.workers.map(({ name }) => held.filter(holder => holder === name).length)
  expect(Math.max(...shares)).toBeLessThanOrEqual(2 * Math.min(...shares))
  // The processes take turns all the time, not just on average: a process hardly ever gets the lock twice in a row.
  const changes = held.filter((name, i) => i > 0 && name !== held[i - 1]).length
  expect(changes).toBeGreaterThan((turns * 2) / 3)
})

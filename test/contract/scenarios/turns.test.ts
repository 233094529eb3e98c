/** Processes that want the same lock all the time take turns at it, without a queue. */
import { expect, test } from 'vitest'
import { Crew } from '../../kit/crew.ts'
import { eventually } from '../../kit/time.ts'

/** Until each has come into the round. */
const beginning = 30
const turns = 240

/** Beside a round trip; and more rounds than are looked at, so that none ends before. */
const order = { hold: 5, rounds: beginning + turns }

test('three processes with a caller each share the lock', { timeout: 60_000 }, async () => {
  const crew = await Crew.hire(order, order, order)
  for (const worker of crew.workers) worker.go()
  const written = await eventually(async () => {
    const entries = await crew.written()
    return entries.length >= beginning + turns ? entries.slice(beginning, beginning + turns) : undefined
  }, 50_000)
  const holders = new Map<string, string>()
  for (const event of await crew.history()) if (event.kind === 'grant') holders.set(event.id, event.worker)
  const held = written!.map(([, id]) => holders.get(id))
  const shares = crew.workers.map(({ name }) => held.filter(holder => holder === name).length)
  expect(Math.max(...shares)).toBeLessThanOrEqual(2 * Math.min(...shares))
  // Not only in the end, but all the time: the next is hardly ever the one before.
  const changes = held.filter((name, i) => i > 0 && name !== held[i - 1]).length
  expect(changes).toBeGreaterThan((turns * 2) / 3)
})

/** Tests that `inspect` shows one moment of a lock that is too long for one reading, and that changes meanwhile. */
import { expect, inject } from 'vitest'
import type { Lock, LockClient, LockState } from '../../src/index.ts'
import { place } from '../kit/place.ts'
import { client, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

interface Scene {
  readonly what: string
  /** So many callers take the lock again and again. */
  readonly callers: number
  lock(locks: LockClient, key: string, caller: number): Lock
  group?(caller: number): string
}

const scenes: readonly Scene[] = [
  { what: 'a mutex', callers: 800, lock: (locks, key) => locks.mutex(key) },
  { what: 'a semaphore', callers: 800, lock: (locks, key) => locks.semaphore(key, 20) },
  { what: 'many holders', callers: 1_500, lock: (locks, key) => locks.semaphore(key, 600) },
  {
    what: 'a semaphore with groups',
    callers: 800,
    lock: (locks, key) => locks.semaphore(key, 20),
    group: caller => `group ${caller % 40}`,
  },
  {
    what: 'a read-write lock',
    callers: 700,
    lock: (locks, key, caller) => locks.readWrite(key)[caller % 7 === 0 ? 'read' : 'write'],
  },
]
// The kinds that a quorum lacks are not repeated in every topology.
const here = ['standalone', 'cluster'].includes(inject('topology')) ? scenes : scenes.slice(0, 1)

function check({ kind, taken, permits = 0, groups, holders, waiters }: LockState): void {
  const ids = [...holders, ...waiters].map(({ id }) => id)
  expect(new Set(ids).size, 'an id is shown once').toBe(ids.length)
  expect(waiters.map(({ position }) => position)).toEqual(waiters.map((_, i) => i + 1))
  if (kind === 'readWrite' && holders.some(({ mode }) => mode === 'write')) expect(holders).toHaveLength(1)
  if (kind !== 'semaphore') return
  const sum = (all: readonly { taken: number }[]) => all.reduce((total, { taken }) => total + taken, 0)
  expect(taken).toBeLessThanOrEqual(permits)
  expect(taken).toBe(holders.length)
  if (!groups) return
  expect(sum(groups)).toBe(taken)
  const waiting = (name: string) => waiters.filter(({ group = '' }) => group === name).length
  for (const { group, waiting: shown } of groups) expect(shown).toBe(waiting(group))
}

// The callers keep the processor busy, which the readings need, too.
test.for(here)('$what', { timeout: 240_000 }, async ({ callers, lock, group }, { key }) => {
  const { source, proxy } = await place().proxied()
  const [working, looking] = [client(), client({}, source)]
  const seen = lock(looking, key, 0)
  await seen.inspect()
  // Between two requests of one reading, some holds end.
  proxy.delay(5)
  let over = false
  const work = Array.from({ length: callers }, async (_, caller) => {
    const options = { fair: true, ...(group && { group: group(caller) }) }
    while (!over) await lock(working, key, caller).using(options, () => sleep(20))
  })
  const ended = Promise.allSettled(work)
  const isLong = ({ holders, waiters }: LockState) => holders.length + waiters.length > 510
  await eventually(async () => isLong(await seen.inspect()))
  for (let readings = 0; readings < 12; readings++) check(await seen.inspect())
  over = true
  await working.close()
  await ended
})

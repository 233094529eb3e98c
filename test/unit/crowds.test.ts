/** Tests that one message costs no look at every waiter, hold or claim of its client, which may have thousands. */
import { expect, test, vi } from 'vitest'
import { quorumOver } from './ballots.ts'
import { FakeClock } from './fake-clock.ts'
import { Leases } from './leases.ts'
import { settled } from './promises.ts'
import { KEY, Waiting } from './waiting.ts'

const MANY = 300

const claimOf = (id: string) => ({ key: KEY, id, owner: `owner ${id}`, label: '', lease: 1_000, headStart: 0 })

/** Counts how often this property of the objects is read. */
function counted<T extends object>(objects: Iterable<T>, name: keyof T): () => number {
  let looks = 0
  for (const object of objects) {
    const value = object[name]
    Object.defineProperty(object, name, {
      get: () => {
        looks += 1
        return value
      },
    })
  }
  return () => looks
}

// This test fails if `for (const waiter of this.#reentrants?.get(owner) ?? [])` becomes `for (const waiter of [...this.line,
// ...this.queue].filter(({ claim }) => claim.owner === owner))` in src/key/key.ts.
test.each(['line', 'queue'] as const)('owners that enter a lock for which others wait in the %s', async mode => {
  const at = new Waiting()
  const waiters = []
  for (let i = 0; i < MANY; i++) waiters.push(await at.start({ id: `${i}`, owner: `${i}`, mayReenter: true, mode }))
  while (at.asking.length > 0) await at.kind.attempts.next.answer(at.refused({ ticket: '7', position: 1 }))
  const looks = counted(waiters, 'call')
  for (let i = 0; i < MANY; i++) at.entered(KEY, `another ${i}`)
  await settled()
  expect(looks()).toBeLessThan(10 * MANY)
})

// This test fails if `if (!this.#grants) {` becomes `{` in src/key/key-holds.ts, and for one owner if `if
// (!hold.forced) ` is removed in src/key/holds.ts.
test.each([
  ['many owners', {}],
  ['one owner', { owner: 'ours', token: 1 }],
])('forced releases of the holds of %s', async (_, grant) => {
  const at = new Leases()
  for (let i = 0; i < MANY; i++) at.hold({ id: `${i}`, key: KEY, ...grant })
  const looks = counted(at.table.allHolds, 'token')
  for (let i = 0; i < MANY; i++) at.lost(`${i}`, 1)
  await settled()
  expect(looks()).toBeLessThan(20 * MANY)
})

// This test fails if `same.push(hold)` becomes `same[0] = hold` in src/key/key-holds.ts.
test('a forced release also takes the holds of calls whose owner is a call that gave none', () => {
  const at = new Leases()
  for (const id of ['outer', 'inner']) at.hold({ id, key: KEY, owner: 'outer', token: 1 })
  at.hold({ id: 'other', key: KEY, token: 2 })
  at.lost('outer', 1)
  const holds = at.table.allHolds
  expect(holds.map(({ forced }) => forced)).toEqual([true, true, false])
})

// This test fails if `[...(this.#sharing.get(sharedBy(claim)) ?? [])]` becomes `[...this.#all.values()]` in
// src/compose/quorum/ballots.ts.
test('claims of many owners on a quorum', () => {
  const { ballots } = quorumOver([], new FakeClock())
  for (let i = 0; i < MANY; i++) ballots.of(claimOf(`${i}`))
  const looks = counted(ballots.all, 'claim')
  for (const ballot of ballots.all) ballots.sharedToken(ballot)
  expect(looks()).toBeLessThan(20 * MANY)
})

// This test fails if `if (claim.owner === claim.id) return []` becomes `if (claim.owner !== claim.id) return []` in
// src/compose/quorum/ballots.ts.
test('a claim whose owner is a call that gave none has the token of that call', () => {
  const { ballots } = quorumOver([], new FakeClock())
  const outer = ballots.of({ ...claimOf('outer'), owner: 'outer' })
  outer.token = 7
  vi.spyOn(outer, 'until', 'get').mockReturnValue(Number.POSITIVE_INFINITY)
  expect(ballots.sharedToken(ballots.of({ ...claimOf('inner'), owner: 'outer' }))).toBe(7)
  expect(ballots.sharedToken(ballots.of(claimOf('another')))).toBeUndefined()
})

/** Tests that a client finds each of its holds, by the hold’s id and by its key, until the hold ends. */
import { expect, test } from 'vitest'
import { Hold } from '../../src/local/hold.ts'
import { FakeClock } from './fake-clock.ts'
import { localLocks } from './waiting.ts'

let granted = 0

function grant(key: string, token: number, id = `hold ${++granted}`): Hold {
  const claim = { key, id, owner: id, label: '', lease: 1_000, headStart: 0 }
  const asked = { claim, since: 0, renew: false, maxHold: 0, alone: false }
  return new Hold(asked, { granted: true, token, deadline: 900, via: 'immediate' }, undefined, 0, granted)
}

test('I7 each hold is found by its id and its key until it is dropped, in any order, and nothing is left', () => {
  for (const order of [
    [0, 1, 2, 3],
    [3, 2, 1, 0],
    [1, 0, 3, 2],
  ]) {
    const live = localLocks(new FakeClock())
    const holds = [grant('a', 1), grant('a', 1), grant('b', 2), grant('a', 3)]
    for (const hold of holds) live.addHold(hold)
    const left = new Set(holds)
    for (const i of [-1, ...order]) {
      if (i >= 0) {
        live.dropHold(holds[i]!)
        left.delete(holds[i]!)
      }
      const ofA = [...left].filter(({ key }) => key === 'a')
      expect([live.holding, live.holds]).toEqual([left.size, [...left]])
      expect([...(live.get('a')?.tenancy.holds ?? [])]).toEqual(ofA)
      expect(live.get('a')?.tenancy.oldest).toBe(ofA[0])
      for (const hold of holds) {
        expect([live.has(hold), live.hold(hold.name.id)]).toEqual([left.has(hold), left.has(hold) ? hold : undefined])
      }
    }
    expect([...live.all]).toEqual([])
  }
})

test('a hold that has ended is not mistaken for another with the same name', () => {
  const live = localLocks(new FakeClock())
  const [first, second] = [grant('a', 1, 'same'), grant('a', 2, 'same')]
  live.addHold(first)
  live.dropHold(first)
  live.addHold(second)
  expect([live.has(first), live.has(second)]).toEqual([false, true])
})

test('the holds of one grant are those with its token', () => {
  const live = localLocks(new FakeClock())
  const holds = [grant('a', 1), grant('a', 1), grant('a', 2), grant('b', 1)]
  for (const hold of holds) live.addHold(hold)
  expect(live.get('a')?.tenancy.ofGrant(holds[1]!)).toEqual(holds.slice(0, 2))
})

/** The holds that have not ended, by what they are looked for. */
import { expect, test } from 'vitest'
import { Hold } from '../../src/lease/hold.ts'
import { LiveHolds } from '../../src/lease/live-holds.ts'

let granted = 0

function grant(key: string, token: number, id = `hold ${++granted}`): Hold {
  const claim = { key, id, owner: id, label: '', lease: 1_000, headStart: 0 }
  const asked = { claim, since: 0, renew: false, maxHold: 0, alone: false }
  return new Hold(asked, { granted: true, token, deadline: 900, via: 'immediate' }, undefined, 0, granted)
}

test('I7 each is found by its id and its key until it is deleted, in any order, and nothing is left', () => {
  for (const order of [
    [0, 1, 2, 3],
    [3, 2, 1, 0],
    [1, 0, 3, 2],
  ]) {
    const live = new LiveHolds()
    const holds = [grant('a', 1), grant('a', 1), grant('b', 2), grant('a', 3)]
    for (const hold of holds) live.add(hold)
    const left = new Set(holds)
    for (const i of [-1, ...order]) {
      if (i >= 0) {
        live.delete(holds[i]!)
        left.delete(holds[i]!)
      }
      const ofA = [...left].filter(({ key }) => key === 'a')
      expect([live.size, live.all]).toEqual([left.size, [...left]])
      expect([...live.ofKey('a')]).toEqual(ofA)
      expect(live.oldestOf('a')).toBe(ofA[0])
      for (const hold of holds) {
        expect([live.has(hold), live.find(hold.name.id)]).toEqual([left.has(hold), left.has(hold) ? hold : undefined])
        const sole = left.has(hold) && [...left].every(other => other === hold || other.key !== hold.key)
        expect(live.isAlone(hold)).toBe(sole)
      }
    }
  }
})

test('one that has ended is not taken for another one by the same name', () => {
  const live = new LiveHolds()
  const [first, second] = [grant('a', 1, 'same'), grant('a', 2, 'same')]
  live.add(first)
  live.delete(first)
  live.add(second)
  expect([live.has(first), live.has(second), live.isAlone(first), live.isAlone(second)]).toEqual([
    false,
    true,
    false,
    true,
  ])
})

test('those of one grant are those with its token', () => {
  const live = new LiveHolds()
  const holds = [grant('a', 1), grant('a', 1), grant('a', 2), grant('b', 1)]
  for (const hold of holds) live.add(hold)
  expect(live.ofGrant(holds[1]!)).toEqual(holds.slice(0, 2))
})

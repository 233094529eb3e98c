/** Tests the table and the list that keep their arrays, against a Map and a Set. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { List, type Listed } from '../../src/list.ts'
import { Lookup } from '../../src/lookup.ts'

test('a table has what a Map has, after any additions and removals', () => {
  const names = fc.oneof(fc.integer({ min: 0, max: 40 }).map(String), fc.string())
  const steps = fc.array(fc.tuple(names, fc.boolean()), { maxLength: 400 })
  fc.assert(
    fc.property(steps, steps => {
      const [table, map] = [new Lookup<number>(), new Map<string, number>()]
      for (const [i, [name, adds]] of steps.entries()) {
        if (adds) {
          table.set(name, i)
          map.set(name, i)
        } else expect(table.delete(name)).toBe(map.delete(name))
        expect([table.size, table.get(name), table.has(name)]).toEqual([map.size, map.get(name), map.has(name)])
      }
      expect(table.values().sort()).toEqual([...map.values()].sort())
      for (const [name, value] of map) expect(table.get(name)).toBe(value)
    }),
  )
})

test('a table of thousands becomes small again when it has held few for long, and loses nothing', () => {
  const table = new Lookup<number>()
  for (let i = 0; i < 5_000; i++) table.set(`burst ${i}`, i)
  for (let i = 5; i < 5_000; i++) table.delete(`burst ${i}`)
  const length = () => table.room
  const burst = length()
  for (let i = 0; i < 500_000; i++) {
    table.set(`next ${i}`, i)
    table.delete(`next ${i}`)
  }
  expect(length()).toBeLessThan(burst / 100)
  expect(table.values().sort()).toEqual([0, 1, 2, 3, 4])
})

describe('a list', () => {
  class Item implements Listed<Item> {
    list: object | undefined
    before: Item | undefined
    after: Item | undefined
  }

  test('has what a Set has, in the same order', () => {
    const steps = fc.array(fc.tuple(fc.nat(12), fc.boolean()), { maxLength: 200 })
    fc.assert(
      fc.property(steps, steps => {
        const [list, set] = [new List<Item>(), new Set<Item>()]
        const items = Array.from({ length: 13 }, () => new Item())
        for (const [i, adds] of steps) {
          const item = items[i]!
          if (adds) {
            list.add(item)
            set.add(item)
          } else expect(list.delete(item)).toBe(set.delete(item))
          expect([...list]).toEqual([...set])
          expect([list.size, list.first, list.has(item)]).toEqual([set.size, [...set][0], set.has(item)])
        }
      }),
    )
  })

  test('does not remove what is in another list', () => {
    const [list, other, item] = [new List<Item>(), new List<Item>(), new Item()]
    list.add(item)
    expect(other.delete(item)).toBe(false)
    expect([...list]).toEqual([item])
  })
})

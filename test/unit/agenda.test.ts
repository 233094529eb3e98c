/** Tests `Agenda`, a list in which each item is due at its own time. It must return due items in the order of time. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Agenda } from '../../src/lease/agenda.ts'

const step = fc.record({
  item: fc.nat(30),
  at: fc.option(fc.nat(100), { nil: Number.POSITIVE_INFINITY }),
  now: fc.nat(100),
})

test('items are due in the order of their times, even if others were moved or removed before', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), steps => {
      const items = Array.from({ length: 31 }, (_, id) => ({ id }))
      const agenda = new Agenda<{ id: number }>()
      const model = new Map<number, number>()
      for (const [i, { item, at, now }] of steps.entries()) {
        if (i % 7 === 6) {
          const times = agenda.due(now).map(({ id }) => {
            const planned = model.get(id)
            model.delete(id)
            return planned as number
          })
          expect(times).toEqual([...times].sort((a, b) => a - b))
          for (const left of model.values()) expect(left).toBeGreaterThan(now)
        } else {
          agenda.set(items[item]!, at)
          model.delete(item)
          if (at < Number.POSITIVE_INFINITY) model.set(item, at)
        }
        expect(agenda.next).toBe(Math.min(Number.POSITIVE_INFINITY, ...model.values()))
      }
    }),
  )
})

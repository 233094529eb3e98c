import { expect, test } from 'vitest'
import { names, present, written } from '../../scripts/bench-results/main.ts'

test.each(names)('the figures of %s are those of the raw runs', page => {
  // If not: npx tsx scripts/bench-results/main.ts
  expect(present(page)).toBe(written(page))
})

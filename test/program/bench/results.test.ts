import { expect, test } from 'vitest'
import type { Results, Trial } from '../../../benchmarks/contract.ts'
import { names, present, written } from '../../../scripts/bench-results/main.ts'
import { unthrottled } from '../../../scripts/bench-results/reach.ts'
import { section } from '../../../scripts/bench-results/section.ts'
import { madeUpResults } from './fixtures/make-results.ts'

test.each(names)('the figures of %s are those of the raw runs', page => {
  // If not: npx tsx scripts/bench-results/main.ts
  expect(present(page)).toBe(written(page))
})

/** Three rounds, and of some only the first. */
function results(figures: Readonly<Record<string, readonly Trial['figures'][]>>, scenario: string): Results {
  const reason = 'left 172 calls that did not return in round 1'
  const trials = Object.entries(figures).flatMap(([rival, rounds]) =>
    [0, 1, 2].map((i): Trial => {
      const about = { rival, scenario, round: i + 1 }
      const taken = rounds[i]
      if (taken) return { ...about, outcome: 'measured', figures: taken }
      if (i === 0) return { ...about, outcome: 'failed', reason: 'no answer', figures: {} }
      return { ...about, outcome: 'skipped', reason, figures: {} }
    }),
  )
  const scenarios = madeUpResults.scenarios.filter(({ name }) => name === scenario)
  return { ...madeUpResults, scenarios, trials, notes: [] }
}

test('who was not tried again stays in the tables, marked as of one round or with its failure', () => {
  const run = results({ redlock: [{ throughput: 43 }], ioredfour: [], 'baton-fair': [{}, {}, {}] }, '2x8')
  const page = section(run, run)
  expect(page).toMatch(/^\| redlock \(1 of 3 rounds\) *\| *43 \|/m)
  expect(page).toMatch(/^\| ioredfour *\| *no answer/m)
  expect(page).toMatch(/^\| baton-fair *\|/m)
})

function reached(what: string, run: Results): readonly number[] {
  return unthrottled.find(goal => goal.what.startsWith(what))!.figures(run)
}

test('a rival of one round is not beaten in the others by its absence', () => {
  const ours = [{ throughput: 100 }, { throughput: 200 }, { throughput: 300 }]
  const run = results(
    { 'baton-fair': ours, redlock: [{ throughput: 50 }], ioredfour: [{ throughput: 1 }, {}, {}] },
    '2x1000',
  )
  expect(reached('fair throughput, 2 × 1,000, against the best rival', run)).toEqual([2, 4, 6])
})

test('figures of two scenarios are of the same round', () => {
  const few = results({ 'baton-fair': [{ releaseCost: 10 }, { releaseCost: 20 }, { releaseCost: 30 }] }, 'drain-10')
  const many = results({ 'baton-fair': [{}, { releaseCost: 24 }] }, 'drain-10000')
  const run = { ...few, scenarios: [...few.scenarios, ...many.scenarios], trials: [...few.trials, ...many.trials] }
  expect(reached('server time of one fair release', run)).toEqual([1.2])
})

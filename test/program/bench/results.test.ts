import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Results, Trial } from '../../../benchmarks/contract.ts'
import type { Goal } from '../../../benchmarks/report/goal.ts'
import { otherKinds, unthrottled } from '../../../benchmarks/report/goals.ts'
import { goalsTable, tables } from '../../../benchmarks/report/table.ts'
import { attainments, verdict } from '../../../benchmarks/report/verdict.ts'
import { rivals } from '../../../benchmarks/rivals/index.ts'
import { scenarios } from '../../../benchmarks/scenarios.ts'
import { names, present, written } from '../../../scripts/bench-results/main.ts'
import { section } from '../../../scripts/bench-results/section.ts'
import { madeUpResults } from './fixtures/make-results.ts'

const raw = new URL('../../../benchmarks/results/', import.meta.url)

test.each(names)('the figures of %s are those of the raw runs', page => {
  // If this fails, run: npx tsx scripts/bench-results/main.ts
  expect(present(page)).toBe(written(page))
})

/** Results of three rounds. A lock with a single entry in `figures` was measured only in the first round. */
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

test('a rival that was not tried again stays in the tables, marked as of one round or with its failure', () => {
  const run = results({ redlock: [{ throughput: 43 }], ioredfour: [], 'baton-fair': [{}, {}, {}] }, '2x8')
  const page = section(run, run)
  expect(page).toMatch(/^\| redlock \(1 of 3 rounds\) *\| *43 \|/m)
  expect(page).toMatch(/^\| ioredfour *\| *no answer/m)
  expect(page).toMatch(/^\| baton-fair *\|/m)
})

function goalOf(what: string): Goal {
  return unthrottled.find(goal => goal.what.startsWith(what))!
}

function reached(what: string, run: Results): readonly number[] {
  return goalOf(what).columns[0]!.figures(run)
}

test('a rival that was measured in one round does not lose the others by its absence', () => {
  const ours = [{ throughput: 100 }, { throughput: 200 }, { throughput: 300 }]
  const run = results(
    { 'baton-fair': ours, redlock: [{ throughput: 50 }], ioredfour: [{ throughput: 1 }, {}, {}] },
    '2x1000',
  )
  expect(reached('fair throughput, 2 × 1,000, hold 0 ÷ best rival', run)).toEqual([2, 4, 6])
})

test('figures of two scenarios are of the same round', () => {
  const few = results({ 'baton-fair': [{ releaseCost: 10 }, { releaseCost: 20 }, { releaseCost: 30 }] }, 'drain-10')
  const many = results({ 'baton-fair': [{}, { releaseCost: 24 }] }, 'drain-10000')
  const run = { ...few, scenarios: [...few.scenarios, ...many.scenarios], trials: [...few.trials, ...many.trials] }
  expect(reached('server time per fair release', run)).toEqual([1.2])
})

test('the goal for an admission allows for one hand-off and for each reader', () => {
  const one = results({ 'baton-fair': [{ admission: 2 }, { admission: 4 }, {}] }, 'read-write-admit-1')
  const many = results(
    { 'baton-fair': [{ admission: 8 }, { admission: 22 }, { admission: 1 }] },
    'read-write-admit-1000',
  )
  const run = { ...one, scenarios: [...one.scenarios, ...many.scenarios], trials: [...one.trials, ...many.trials] }
  const goal = otherKinds.find(({ what }) => what.startsWith("time from a writer's release"))!
  // In the first round, one reader is admitted in 2 ms. So the goal for 1,000 readers is 8 ms: 1.5 × 2 ms, and 5 µs for
  // each reader.
  expect(goal.columns[0]!.figures(run)).toEqual([1, 2])
  expect(attainments(run).map(({ what, verdict }) => [what, verdict])).toContainEqual([goal.what, 'missed'])
})

describe('a goal', () => {
  const what = 'fair hand-off p50, 2 × 8, hold 5 ms'
  /**
   * Makes the results of three rounds. The figures are given as ratios to those of the simplest lock, `floor-publish`.
   */
  const handoffs = (all: readonly number[], cross: readonly number[]) =>
    results(
      {
        'baton-fair': all.map((ratio, i) => ({ handoffP50: 100 * ratio, crossP50: 100 * cross[i]! })),
        'floor-publish': all.map(() => ({ handoffP50: 100, crossP50: 100 })),
      },
      '2x8-hold5',
    )
  const good = handoffs([1, 1.1, 9], [1.1, 1.2, 9])
  const bad = handoffs([1, 1, 1], [1, 2, 2])

  test('is reached if the medians of both hand-off columns reach it, and missed if either does not', () => {
    const goal = goalOf(what)
    expect(verdict(goal, good, [])).toBe('reached')
    expect(verdict(goal, bad, [])).toBe('missed')
    expect(verdict(goal, handoffs([2, 2, 1], [1, 1, 1]), [])).toBe('missed')
  })

  test('is not measured if a column is missing', () => {
    const handoffP50 = [{ handoffP50: 100 }, { handoffP50: 100 }, { handoffP50: 100 }]
    const half = results({ 'baton-fair': handoffP50, 'floor-publish': handoffP50 }, '2x8-hold5')
    expect(verdict(goalOf(what), half, [])).toBe('not measured')
    expect(verdict(goalOf('uncontended'), good, [])).toBe('not measured')
  })

  test('is not steady if another run on the same machine missed it', () => {
    const goal = goalOf(what)
    const elsewhere = { ...bad, machine: { ...bad.machine, cores: 64 } }
    const without = results({}, '2x8')
    expect(verdict(goal, good, [good, elsewhere, without])).toBe('reached')
    expect(verdict(goal, good, [good, bad])).toBe('not steady')
    expect(verdict(goal, bad, [good])).toBe('missed')
  })

  test('appears on the page with both columns, and with the run that makes it not steady', () => {
    const page = section(good, good, { 'all-2.json': bad })
    const row = page.split('\n').find(line => line.startsWith(`| ${what}`))
    expect(row).toContain('1.10 (1.00–9.00); to another process 1.20 (1.10–9.00) | **not steady** |')
    expect(page).toContain('[all-2.json](../benchmarks/results/all-2.json)')
  })
})

test('the page begins with work inside the lock and ends with hot loops, in whatever order they were run', () => {
  const turned = { ...madeUpResults, scenarios: [...madeUpResults.scenarios].reverse() }
  const heads = [...section(turned, { ...turned, scenarios: [], trials: [] }).matchAll(/^### (.*)$/gm)].map(
    ([, head]) => head,
  )
  expect(heads[0]).toBe('Work inside the lock: 2 processes × 8 waiters, hold 5 ms')
  expect(heads[1]).toBe('One caller without contention: lock and release')
  expect(heads[2]).toBe('Goals')
  const hot = heads.slice(heads.indexOf('Loops with nothing inside the lock') + 1).join('\n')
  expect(hot).toMatch(/^1,000 keys .*\n2 processes × 8 waiters, hold 0\n(.*\n)*2 processes × 1,000 waiters, hold 0$/)
})

test('the headline gives the cost of the same locks without waiting, and the number of rounds', () => {
  const busy = results({ 'baton-fair': [{ throughput: 170 }, { throughput: 171 }, { throughput: 172 }] }, '2x8-hold5')
  const parked = results({ 'baton-fair': [{ commandsPerSecond: 1.2 }] }, 'idle-1000')
  const run = { ...busy, trials: [...busy.trials, ...parked.trials] }
  expect(section(run, run)).toMatch(
    /^### Work inside the lock: 2 processes × 8 waiters, hold 5 ms\n(.*\n)*\| baton-fair .* 1\.20 \(1 of 3 rounds\) \|/m,
  )
})

test('the tables for a terminal fit 100 columns, and each explains its own', () => {
  const all = JSON.parse(readFileSync(new URL('all.json', raw), 'utf8')) as Results
  const quorum = JSON.parse(readFileSync(new URL('quorum.json', raw), 'utf8')) as Results
  for (const run of [all, quorum, madeUpResults]) {
    const text = `${tables(run)}\n${goalsTable({ ...run, goals: attainments(run) })}`
    // Titles, and reasons why a lock was not measured, are no part of a table.
    const inTables = text.split('\n').filter(line => !/^(\S+| {2}[\w-]+(, [\w-]+)*): /.test(line))
    expect(inTables.filter(line => line.length > 100)).toEqual([])
  }
  const [, first] = /^2x8-hold5: .*\n((?:.+\n)+)\n/m.exec(tables(all))!
  expect(first).toMatch(/locks\/s {2,}longest/)
  expect(first).toContain('longest wait: of any caller')
  expect(first).toContain('× floor: of the figure before, to floor-publish')
})

test('docs/benchmarks.md lists every scenario, in the order of the reports, and every lock', () => {
  const page = present('docs/benchmarks.md')
  const named = (heading: string) => {
    const [, part] = page.split(`## ${heading}\n`) as [string, string]
    const rows = part.split('\n## ')[0]!.matchAll(/^\| (`.*?) \|/gm)
    return [...rows].flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)].map(([, name]) => name))
  }
  expect(named('Scenarios')).toEqual(scenarios.map(({ name }) => name))
  expect([...named('Locks and their settings'), ...named('The floors')].sort()).toEqual(
    rivals.map(({ name }) => name).sort(),
  )
})

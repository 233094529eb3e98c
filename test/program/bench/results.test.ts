import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Results, Trial } from '../../../benchmarks/contract.ts'
import type { Goal } from '../../../benchmarks/report/goal.ts'
import { unthrottled } from '../../../benchmarks/report/goals.ts'
import { names, present, written } from '../../../benchmarks/report/pages.ts'
import { report, reported } from '../../../benchmarks/report/reports.ts'
import { goalsTable, tables } from '../../../benchmarks/report/table.ts'
import { attainments, verdict } from '../../../benchmarks/report/verdict.ts'
import { scenarios } from '../../../benchmarks/scenarios.ts'

const read = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../benchmarks/results/${name}`, import.meta.url), 'utf8')) as Results
const measured = read('all.json')

test.each(names)('the figures of %s are those of the raw runs', page => {
  // If this fails, run: npx tsx benchmarks/report/pages.ts
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
  const asked = scenarios.filter(({ name }) => name === scenario)
  return { ...measured, scenarios: asked, trials, notes: [] }
}

function goalOf(what: string): Goal {
  return unthrottled.find(goal => goal.what.startsWith(what))!
}

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
})

test('the tables for a terminal fit 80 columns, and each explains its own', () => {
  for (const run of [measured, read('quorum.json')]) {
    const text = `${tables(run)}\n${goalsTable({ ...run, goals: attainments(run) })}`
    // Titles, and reasons why a lock was not measured, are no part of a table.
    const inTables = text.split('\n').filter(line => !/^(\S+| {2}[\w-]+(, [\w-]+)*): /.test(line))
    expect(inTables.filter(line => line.length > 80)).toEqual([])
  }
  const [, first] = /^2x8-hold5: .*\n((?:.+\n)+)\n/m.exec(tables(measured))!
  expect(first).toMatch(/locks\/s {2,}longest/)
  expect(first).toContain('longest wait: of any caller')
  expect(first).toContain('× floor: of the figure before, to floor-publish')
})

test('benchmarks/README.md lists every scenario, in the order of the reports', () => {
  const page = readFileSync(new URL('../../../benchmarks/README.md', import.meta.url), 'utf8')
  const [, part] = page.split('## Scenarios\n') as [string, string]
  const rows = part.split('\n## ')[0]!.matchAll(/^\| (`.*?) \|/gm)
  const named = [...rows].flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)].map(([, name]) => name))
  expect(named).toEqual(scenarios.map(({ name }) => name))
})

test('each report that docs/benchmarks.md links to shows its run, and the goals that it missed', () => {
  expect(reported().length).toBeGreaterThan(5)
  for (const name of reported()) expect(report(name), name).toContain(`${read(`${name}.json`).rivals.length} locks in`)
  expect(report('all')).toContain('<strong>missed</strong>')
})

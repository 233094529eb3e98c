/**
 * Prints the results as tables for a terminal. Each scenario has a table with a row for each rival. The cells show
 * medians with min–max over the rounds. If a table would be wider than `WIDTH`, its last columns are left out: the page
 * and the raw results have every figure. Below each table, a line says what its columns mean.
 */
import Table from 'cli-table3'
import type { Results, Scenario } from '../contract.ts'
import { contentOf, meaningsOf } from './columns.ts'

const names = [
  ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
  ...['left', 'left-mid', 'mid-mid', 'right', 'right-mid', 'middle'],
]

/** The widest line, in characters. */
const WIDTH = 80

/** The only line of a table is below its head. Vertical lines would make the wide tables even wider. */
const look = {
  style: { head: [], border: [], compact: true },
  chars: { ...Object.fromEntries(names.map(name => [name, ''])), mid: '─' },
}

export function tables(results: Results): string {
  return results.scenarios.map(scenario => table(results, scenario)).join('\n\n')
}

/** Returns a table of the project's goals for redis-baton for which the run has figures. */
export function goalsTable({ goals = [] }: Results): string {
  const rows = new Table({ head: ['', 'goal', 'measured', ''], colWidths: [33, 12, 21, 12], wordWrap: true, ...look })
  for (const { what, goal, measured, verdict } of goals) rows.push([what.replaceAll('`', ''), goal, measured, verdict])
  return `The project’s goals for redis-baton\n${rows}`
}

function table(results: Results, scenario: Scenario, most = Number.POSITIVE_INFINITY): string {
  const { columns, rows, shortcomings } = contentOf(results, scenario, most)
  const drawn = new Table({ head: ['', ...columns.map(({ head }) => head), 'faults'], ...look })
  drawn.push(...rows)
  const text = drawn.toString()
  const isWide = text.split('\n').some(line => line.trimEnd().length > WIDTH)
  if (isWide && columns.length > 1) return table(results, scenario, columns.length - 1)
  const ratios = columns.flatMap(({ head, over }) =>
    over ? [`${head.replace('\n', ' ')}: of the figure before, to ${over}`] : [],
  )
  const shown = `${text}\n${indented([...meaningsOf(columns), ...ratios].join('; '))}`
  return [
    wrapped(`${scenario.name}: ${scenario.title}`),
    rows.length > 0 ? shown : '  No lock was measured.',
    ...shortcomings.map(indented),
  ].join('\n')
}

function indented(text: string): string {
  return `  ${wrapped(text, WIDTH - 2).replaceAll('\n', '\n  ')}`
}

/** Breaks a text into lines of at most this width. */
export function wrapped(text: string, width = WIDTH): string {
  return text.replace(new RegExp(`(.{1,${width}})(?: |$)`, 'g'), '$1\n').trimEnd()
}

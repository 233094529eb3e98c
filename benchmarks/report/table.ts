/**
 * Prints the results as tables for a terminal. Each scenario has a table with a row for each rival. The cells show
 * medians with min–max over the rounds.
 */
import Table from 'cli-table3'
import type { Measure, Results, Scenario, Trial } from '../contract.ts'
import { batonFairSingle } from '../rivals/baton.ts'
import { floorBroadcast, floorPublish, floorSet } from '../rivals/floors.ts'
import { roundsOf } from './rounds.ts'
import { type Subject, subjectOf } from './subject.ts'

const names = [
  ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
  ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'],
]

/** The settings with which cli-table3 draws no lines. */
const noBorders: Readonly<Record<string, string>> = Object.fromEntries(names.map(name => [name, '']))

interface Column {
  readonly measure: Measure
  readonly head: string
  readonly unit?: 'share' | 'whole' | 'KB'
  /** The name of a second rival. If set, each cell is the median of the row's lock divided by that of this rival. */
  readonly over?: string
}

const speed: Column[] = [
  { measure: 'throughput', head: 'acquisitions/s', unit: 'whole' },
  { measure: 'handoffP50', head: 'hand-off\np50 µs' },
  { measure: 'handoffP50', head: '× floor', over: floorPublish.name },
  { measure: 'handoffP99', head: 'p99 µs', unit: 'whole' },
  { measure: 'crossP50', head: 'p50 to other\nprocess µs' },
]
const cost: Column[] = [
  { measure: 'commands', head: 'commands' },
  { measure: 'serverCpu', head: 'server\nCPU µs' },
  { measure: 'clientCpu', head: 'client\nCPU µs' },
]
const secondRounds: Column = { measure: 'secondRounds', head: 'second\nrounds', unit: 'share' }
const fairness: Column[] = [
  { measure: 'backToReleaser', head: 'back to\nreleaser', unit: 'share' },
  { measure: 'jain', head: "Jain's\nindex" },
  { measure: 'overtaken', head: 'over-\ntaken', unit: 'whole' },
  { measure: 'waitMax', head: 'longest\nwait ms' },
]

const columnsOf: Record<Subject, readonly Column[]> = {
  uncontended: [
    { measure: 'cycleP50', head: 'lock + release\np50 µs' },
    { measure: 'cycleP50', head: '× floor', over: floorSet.name },
    { measure: 'throughput', head: 'cycles/s', unit: 'whole' },
    ...cost,
    { measure: 'commandTime', head: 'server µs\nper command' },
    { measure: 'bytes', head: 'bytes', unit: 'whole' },
  ],
  mixed: [
    { measure: 'throughput', head: 'acquisitions/s', unit: 'whole' },
    { measure: 'crossP50', head: 'p50 to other\nprocess µs' },
    { measure: 'waitMaxFair', head: 'longest wait\nfair ms', unit: 'whole' },
    { measure: 'waitMaxUnfair', head: 'longest wait\nunfair ms', unit: 'whole' },
    ...cost,
  ],
  loop: [...speed, ...fairness, ...cost],
  phases: [
    { measure: 'throughput', head: 'acquisitions/s', unit: 'whole' },
    { measure: 'waitMaxReaders', head: 'longest wait\nreaders ms', unit: 'whole' },
    { measure: 'waitMaxWriters', head: 'longest wait\nwriters ms', unit: 'whole' },
    { measure: 'crossP50', head: 'p50 to other\nprocess µs' },
    ...cost,
  ],
  quorumAlone: [
    { measure: 'cycleP50', head: 'lock + release\np50 µs' },
    { measure: 'cycleP50', head: '× one\nserver', over: batonFairSingle.name },
    { measure: 'cycleP99', head: 'p99 µs' },
    { measure: 'throughput', head: 'cycles/s', unit: 'whole' },
    { measure: 'waitMax', head: 'longest\nwait ms' },
    ...cost,
    secondRounds,
  ],
  quorum: [
    { measure: 'throughput', head: 'acquisitions/s', unit: 'whole' },
    { measure: 'waitMax', head: 'longest\nwait ms' },
    { measure: 'crossP50', head: 'p50 to other\nprocess µs' },
    { measure: 'attempts', head: 'attempts' },
    ...cost,
    secondRounds,
    { measure: 'jain', head: "Jain's\nindex" },
    { measure: 'overtaken', head: 'over-\ntaken', unit: 'whole' },
  ],
  admission: [
    { measure: 'admission', head: 'until all\nrun ms' },
    { measure: 'admission', head: '× floor', over: floorBroadcast.name },
    { measure: 'messages', head: 'messages', unit: 'whole' },
    { measure: 'commands', head: 'commands' },
  ],
  burst: [
    { measure: 'drain', head: 'drain ms' },
    { measure: 'drain', head: '× floor', over: floorPublish.name },
    { measure: 'inversions', head: 'inverted\npairs', unit: 'share' },
    { measure: 'overtaken', head: 'over-\ntaken', unit: 'whole' },
    { measure: 'handoffP50', head: 'hand-off\np50 µs' },
    { measure: 'crossP50', head: 'p50 to other\nprocess µs' },
  ],
  drain: [
    { measure: 'drain', head: 'drain ms' },
    { measure: 'throughput', head: 'acquisitions/s', unit: 'whole' },
    { measure: 'releaseCost', head: 'server µs\nper release' },
    { measure: 'commands', head: 'commands' },
    { measure: 'overtaken', head: 'over-\ntaken', unit: 'whole' },
  ],
  'crash-holder': [{ measure: 'nextGrant', head: 'next grant\nms' }],
  'crash-waiters': [
    { measure: 'nextGrant', head: 'next grant ms' },
    { measure: 'ordinaryHandoff', head: 'without the\ncrash ms' },
  ],
  idle: [
    { measure: 'commandsPerSecond', head: 'commands/s' },
    { measure: 'residentPerWaiter', head: 'client KB\nper waiter', unit: 'KB' },
    { measure: 'heapPerWaiter', head: 'JS heap KB\nper waiter', unit: 'KB' },
    { measure: 'redisPerWaiter', head: 'Redis KB\nper waiter', unit: 'KB' },
  ],
}

/** Measures that must be 0, each with its name in reports. The column 'faults' shows the measures that are above 0. */
const faults: readonly (readonly [Measure, string])[] = [
  ['overlaps', 'overlaps'],
  ['starved', 'starved'],
  ['unfinished', 'unfinished'],
  ['errors', 'errors'],
]

export function tables(results: Results): string {
  return results.scenarios.map(scenario => table(results, scenario)).join('\n\n')
}

/** Returns a table of the project's goals for redis-baton for which the run has figures. */
export function goalsTable({ goals = [] }: Results): string {
  const rows = new Table({
    head: ['', 'goal', 'measured', ''],
    style: { head: [], border: [], compact: true },
    chars: { ...noBorders, mid: '─' },
  })
  for (const { what, goal, measured, verdict } of goals) rows.push([what.replaceAll('`', ''), goal, measured, verdict])
  return `The project’s goals for redis-baton\n${rows}`
}

function table({ rivals, trials, options }: Results, scenario: Scenario): string {
  const columns = columnsOf[subjectOf(scenario)]
  const reasons = new Map<string, string[]>()
  const rows = new Table({
    head: ['', ...columns.map(({ head }) => head), 'faults'],
    style: { head: [], border: [], compact: true },
    // The only line is below the head. Vertical lines would make the wide tables even wider.
    chars: { ...noBorders, mid: '─' },
  })
  const of = (name: string) => trials.filter(trial => trial.rival === name && trial.scenario === scenario.name)
  for (const { name } of rivals) {
    const all = of(name)
    const { measured, mark, shortcomings } = roundsOf(all, options.rounds)
    for (const text of shortcomings) reasons.set(text, [...(reasons.get(text) ?? []), name])
    if (measured.length > 0) {
      rows.push([
        mark ? `${name}\n${mark}` : name,
        ...columns.map(column => (column.over ? ratio(measured, column, of(column.over)) : cell(measured, column))),
        faultsOf(all),
      ])
    }
  }
  const left = [...reasons].map(([text, names]) => `  ${names.join(', ')}: ${text}`)
  const shown = [...(rows.length > 0 ? [rows.toString()] : []), ...left]
  return [`${scenario.name}: ${scenario.title}`, ...(shown.length > 0 ? shown : ['  No lock was measured.'])].join('\n')
}

function cell(trials: readonly Trial[], { measure, unit }: Column): string {
  const values = valuesOf(trials, measure)
  if (values.length === 0) return '–'
  const [least, most] = [values[0]!, values.at(-1)!]
  const range = values.length === 1 ? '' : `\n${format(least, unit)}–${format(most, unit)}`
  return format(median(values), unit) + range
}

function ratio(trials: readonly Trial[], { measure }: Column, floor: readonly Trial[]): string {
  const [one, other] = [valuesOf(trials, measure), valuesOf(floor, measure)]
  return one.length === 0 || other.length === 0 ? '–' : (median(one) / median(other)).toFixed(2)
}

function faultsOf(trials: readonly Trial[]): string {
  const found = faults.flatMap(([measure, name]) => {
    const most = valuesOf(trials, measure).at(-1) ?? 0
    return most > 0 ? [`${format(most, 'whole')} ${name}`] : []
  })
  const tried = trials.filter(({ outcome }) => outcome !== 'skipped')
  const failed = tried.filter(({ outcome }) => outcome === 'failed')
  if (failed.length > 0) found.push(`${failed.length} of ${tried.length} measurements failed`)
  return found.join('\n') || '0'
}

function valuesOf(trials: readonly Trial[], measure: Measure): number[] {
  const values = trials.map(trial => trial.figures[measure]).filter(value => value !== undefined)
  return values.sort((a, b) => a - b)
}

/** Returns the median of sorted values. */
export function median(values: readonly number[]): number {
  const middle = values.length / 2
  return (values[Math.ceil(middle) - 1]! + values[Math.floor(middle)]!) / 2
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const threeDigits = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

function format(value: number, unit: Column['unit']): string {
  if (unit === 'share') return `${threeDigits.format(value * 100)} %`
  if (unit === 'KB') return threeDigits.format(value / 1_000)
  return unit === 'whole' || value >= 1_000 ? whole.format(value) : threeDigits.format(value)
}

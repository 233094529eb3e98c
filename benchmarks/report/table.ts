/**
 * Prints the results as tables for a terminal. Each scenario has a table with a row for each rival. The cells show
 * medians with min–max over the rounds. If a table would be wider than `WIDTH`, its last columns are left out: the page
 * and the raw results have every figure. Below each table, a line says what its columns mean.
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

/** The widest line of a table, in characters. */
const WIDTH = 100

/** The settings with which cli-table3 draws no lines. */
const noBorders: Readonly<Record<string, string>> = Object.fromEntries(names.map(name => [name, '']))

interface Column {
  readonly measure: Measure
  readonly head: string
  readonly unit?: 'share' | 'whole' | 'KB'
  /** The name of a second rival. If set, each cell is the median of the row's lock divided by that of this rival. */
  readonly over?: string
}

const commands: Column = { measure: 'commands', head: 'commands' }
const clientCpu: Column = { measure: 'clientCpu', head: 'client\nCPU µs' }
const serverCpu: Column = { measure: 'serverCpu', head: 'server\nCPU µs' }
const cost: Column[] = [commands, serverCpu, clientCpu]
const locksPerSecond: Column = { measure: 'throughput', head: 'locks/s', unit: 'whole' }
const cross: Column = { measure: 'crossP50', head: 'p50 to other\nprocess µs' }
const longest: Column = { measure: 'waitMax', head: 'longest\nwait ms' }
const secondRounds: Column = { measure: 'secondRounds', head: 'second\nrounds', unit: 'share' }
const overtaken: Column = { measure: 'overtaken', head: 'over-\ntaken', unit: 'whole' }

/** The columns of each table, the most important first. */
const columnsOf: Record<Subject, readonly Column[]> = {
  uncontended: [
    { measure: 'cycleP50', head: 'lock + release\np50 µs' },
    { measure: 'cycleP50', head: '× floor', over: floorSet.name },
    locksPerSecond,
    ...cost,
    { measure: 'bytes', head: 'bytes', unit: 'whole' },
    { measure: 'commandTime', head: 'server µs\nper command' },
  ],
  mixed: [
    ...[locksPerSecond, cross],
    { measure: 'waitMaxFair', head: 'longest wait\nfair ms', unit: 'whole' },
    { measure: 'waitMaxUnfair', head: 'longest wait\nunfair ms', unit: 'whole' },
    ...cost,
  ],
  loop: [
    ...[locksPerSecond, longest, cross],
    { measure: 'crossP50', head: '× floor', over: floorPublish.name },
    commands,
    { measure: 'backToReleaser', head: 'back to\nreleaser', unit: 'share' },
    overtaken,
    { measure: 'handoffP50', head: 'hand-off\np50 µs' },
    { measure: 'jain', head: "Jain's\nindex" },
    { measure: 'handoffP99', head: 'p99 µs', unit: 'whole' },
    ...[clientCpu, serverCpu],
  ],
  phases: [
    locksPerSecond,
    { measure: 'waitMaxReaders', head: 'longest wait\nreaders ms', unit: 'whole' },
    { measure: 'waitMaxWriters', head: 'longest wait\nwriters ms', unit: 'whole' },
    cross,
    ...cost,
  ],
  quorumAlone: [
    { measure: 'cycleP50', head: 'lock + release\np50 µs' },
    { measure: 'cycleP50', head: '× one\nserver', over: batonFairSingle.name },
    locksPerSecond,
    secondRounds,
    { measure: 'cycleP99', head: 'p99 µs' },
    longest,
    ...cost,
  ],
  quorum: [
    ...[locksPerSecond, longest, cross],
    { measure: 'attempts', head: 'attempts' },
    secondRounds,
    ...cost,
    { measure: 'jain', head: "Jain's\nindex" },
    overtaken,
  ],
  admission: [
    { measure: 'admission', head: 'until all\nrun ms' },
    { measure: 'admission', head: '× floor', over: floorBroadcast.name },
    { measure: 'messages', head: 'messages', unit: 'whole' },
    commands,
  ],
  burst: [
    { measure: 'drain', head: 'drain ms' },
    { measure: 'drain', head: '× floor', over: floorPublish.name },
    { measure: 'inversions', head: 'inverted\npairs', unit: 'share' },
    overtaken,
    { measure: 'handoffP50', head: 'hand-off\np50 µs' },
    cross,
  ],
  groups: [
    { measure: 'releaseP50', head: 'release\nscript p50 µs' },
    commands,
    { measure: 'drain', head: 'drain ms' },
    locksPerSecond,
    overtaken,
  ],
  jobs: [
    { measure: 'drain', head: 'drain ms' },
    { measure: 'waitMaxSmall', head: 'longest wait\nsmall ms' },
    { measure: 'mostAtOnce', head: 'at\nonce', unit: 'whole' },
    { measure: 'mostOfGroup', head: 'of one\ntenant', unit: 'whole' },
    commands,
    clientCpu,
  ],
  drain: [
    { measure: 'drain', head: 'drain ms' },
    locksPerSecond,
    { measure: 'releaseCost', head: 'server µs\nper release' },
    commands,
    overtaken,
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

/** What the heads of the columns mean, in the order in which they are said. */
const meanings: Partial<Record<Measure, string>> = {
  throughput: 'locks/s: of all callers together',
  cycleP50: 'p50: the median',
  waitMax: 'longest wait: of any caller, from its call to its lock',
  crossP50: 'to other process: from a release until a caller of another process has the lock',
  handoffP50: 'hand-off: from a release until the next caller has the lock',
  commands: 'commands: sent to Redis for each lock',
  backToReleaser: 'back to releaser: the share that went to the caller that had the lock before',
  overtaken: 'overtaken: how many later callers at most were served before one',
  jain: "Jain's index: 1 if all callers have as many locks",
  clientCpu: 'client CPU: time of all clients for each lock',
  serverCpu: 'server CPU: the same of Redis',
  bytes: 'bytes: over the network for each lock',
  commandTime: 'server µs: in commands only',
  attempts: 'attempts: of asking all servers, for each lock',
  secondRounds: 'second rounds: grants that took another round trip',
  waitMaxFair: 'longest wait: of any caller of that half',
  waitMaxReaders: 'longest wait: of any reader, of any writer',
  waitMaxSmall: 'longest wait small: of any job of the small tenants, from the release of the first holders',
  mostAtOnce: 'at once, of one tenant: how many jobs ran at a time, at most',
  admission: 'until all run: from the release of a writer until all readers have the lock',
  messages: 'messages: that clients received for it',
  drain: 'drain: from the first release until the last waiter has the lock',
  inversions: 'inverted pairs: 50 % is no order at all',
  releaseCost: 'server µs: of Redis in commands for each release',
  releaseP50: 'release script: the time of the script that releases, without heartbeats',
  nextGrant: 'next grant: how long after the crash',
  ordinaryHandoff: 'without the crash: the same hand-off',
  commandsPerSecond: 'commands/s: of 1,000 callers that wait while nothing happens',
  heapPerWaiter: 'per waiter: the memory that each of them takes',
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
    colWidths: [47, 11, 28, 14],
    wordWrap: true,
    style: { head: [], border: [], compact: true },
    chars: { ...noBorders, mid: '─' },
  })
  for (const { what, goal, measured, verdict } of goals) rows.push([what.replaceAll('`', ''), goal, measured, verdict])
  return `The project’s goals for redis-baton\n${rows}`
}

function table({ rivals, trials, options }: Results, scenario: Scenario): string {
  const reasons = new Map<string, string[]>()
  const of = (name: string) => trials.filter(trial => trial.rival === name && trial.scenario === scenario.name)
  const drawn = (columns: readonly Column[]): string => {
    const rows = new Table({
      head: ['', ...columns.map(({ head }) => head), 'faults'],
      style: { head: [], border: [], compact: true },
      // The only line is below the head. Vertical lines would make the wide tables even wider.
      chars: { ...noBorders, mid: '─' },
    })
    for (const { name } of rivals) {
      const all = of(name)
      const { measured, mark } = roundsOf(all, options.rounds)
      if (measured.length === 0) continue
      const cells = columns.map(each => (each.over ? ratio(measured, each, of(each.over)) : cell(measured, each)))
      rows.push([mark ? `${name}\n${mark}` : name, ...cells, faultsOf(all)])
    }
    if (rows.length === 0) return ''
    const text = rows.toString()
    const widest = Math.max(...text.split('\n').map(line => line.trimEnd().length))
    return widest > WIDTH && columns.length > 1 ? drawn(columns.slice(0, -1)) : `${text}\n${explained(columns)}`
  }
  for (const { name } of rivals) {
    for (const text of roundsOf(of(name), options.rounds).shortcomings)
      reasons.set(text, [...(reasons.get(text) ?? []), name])
  }
  const shown = drawn(columnsOf[subjectOf(scenario)])
  const left = [...reasons].map(([text, names]) => `  ${names.join(', ')}: ${text}`)
  const parts = [`${scenario.name}: ${scenario.title}`, ...(shown ? [shown] : []), ...left]
  return (parts.length > 1 ? parts : [...parts, '  No lock was measured.']).join('\n')
}

function explained(columns: readonly Column[]): string {
  const known = Object.entries(meanings).filter(([measure]) => columns.some(column => column.measure === measure))
  const floor = columns.find(({ over }) => over)?.over
  return wrapped(
    [...known.map(([, text]) => text), ...(floor ? [`× floor: of the figure before, to ${floor}`] : [])].join('; '),
  )
}

/** Breaks a text into indented lines that are no wider than a table. */
function wrapped(text: string): string {
  return text.replace(new RegExp(`(.{1,${WIDTH - 2}})(?: |$)`, 'g'), '  $1\n').trimEnd()
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

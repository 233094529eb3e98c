/**
 * What the tables of the reports contain: the columns for each subject, and the text of each cell. table.ts prints the
 * tables in a terminal, and pages.ts writes them as Markdown. A line feed in a text is where a terminal breaks the line.
 */
import type { Measure, Results, Scenario } from '../contract.ts'
import { batonFairSingle } from '../rivals/baton.ts'
import { floorBroadcast, floorPublish, floorSet } from '../rivals/floors.ts'
import { type Entry, entriesOf } from './entries.ts'
import { number, words } from './html-measures.ts'
import { type Subject, subjectOf } from './subject.ts'

/** The head of each column and what it means, in the order in which the meanings are said. Some heads say enough. */
const heads = {
  throughput: ['locks/s', 'locks/s: of all callers together'],
  cycleP50: ['lock + release\np50 µs', 'p50: the median'],
  cycleP99: ['lock + release\np99 µs', ''],
  waitMax: ['longest\nwait ms', 'longest wait: of any caller, from its call to its lock'],
  crossP50: [
    'p50 to other\nprocess µs',
    'to other process: from a release until a caller of another process has the lock',
  ],
  handoffP50: ['hand-off\np50 µs', 'hand-off: from a release until the next caller has the lock'],
  handoffP99: ['hand-off\np99 µs', ''],
  commands: ['commands', 'commands: sent to Redis for each lock'],
  backToReleaser: [
    'back to\nreleaser %',
    'back to releaser: the share that went to the caller that had the lock before',
  ],
  overtaken: ['over-\ntaken', 'overtaken: how many later callers at most were served before one'],
  jain: ["Jain's\nindex", "Jain's index: 1 if all callers have as many locks"],
  clientCpu: ['client\nCPU µs', 'client CPU: time of all clients for each lock'],
  serverCpu: ['server\nCPU µs', 'server CPU: the same of Redis'],
  bytes: ['bytes', 'bytes: over the network for each lock'],
  commandTime: ['server µs\nper command', 'server µs: in commands only'],
  attempts: ['attempts', 'attempts: of asking all servers, for each lock'],
  secondRounds: ['second\nrounds %', 'second rounds: grants that took another round trip'],
  waitMaxFair: ['longest wait\nfair ms', 'longest wait fair, unfair: of any caller of that half'],
  waitMaxUnfair: ['longest wait\nunfair ms', ''],
  waitMaxReaders: ['longest wait\nreaders ms', 'longest wait readers, writers: of any reader, of any writer'],
  waitMaxWriters: ['longest wait\nwriters ms', ''],
  waitMaxSmall: [
    'longest wait\nsmall ms',
    'longest wait small: of any job of the small tenants, from the release of the first holders',
  ],
  mostAtOnce: ['at\nonce', 'at once, of one tenant: how many jobs ran at a time, at most'],
  mostOfGroup: ['of one\ntenant', ''],
  admission: ['until all\nrun ms', 'until all run: from the release of a writer until all readers have the lock'],
  messages: ['messages', 'messages: that clients received for it'],
  drain: ['drain ms', 'drain: from the first release until the last waiter has the lock'],
  inversions: ['inverted\npairs %', 'inverted pairs: 50 is no order at all'],
  releaseCost: ['server µs\nper release', 'server µs per release: of Redis, in commands'],
  releaseP50: ['release\nscript p50 µs', 'release script: the time of the script that releases, without heartbeats'],
  nextGrant: ['next grant\nms', 'next grant: how long after the crash'],
  ordinaryHandoff: ['without the\ncrash ms', 'without the crash: the same hand-off'],
  commandsPerSecond: ['commands/s', 'commands/s: of 1,000 callers that wait while nothing happens'],
  residentPerWaiter: ['client B\nper waiter', ''],
  heapPerWaiter: ['JS heap B\nper waiter', 'per waiter: the memory that each of them takes'],
  redisPerWaiter: ['Redis B\nper waiter', ''],
} as const satisfies Partial<Record<Measure, readonly [head: string, meaning: string]>>

export interface Column {
  readonly measure: keyof typeof heads
  readonly head: string
  /** The name of a second lock. If set, each cell is the median of the row's lock divided by that of this lock. */
  readonly over?: string
}

const over = (measure: Column['measure'], { name }: { readonly name: string }, head = '× floor'): Column => {
  return { measure, head, over: name }
}

const cost = ['commands', 'serverCpu', 'clientCpu'] as const

/** The columns of each table, the most important first. A ratio stands after the figure from which it is computed. */
const columnsOf: Readonly<Record<Subject, readonly (Column | Column['measure'])[]>> = {
  uncontended: ['cycleP50', over('cycleP50', floorSet), 'throughput', ...cost, 'bytes', 'commandTime'],
  mixed: ['throughput', 'crossP50', 'waitMaxFair', 'waitMaxUnfair', ...cost],
  loop: [
    ...(['throughput', 'waitMax', 'crossP50'] as const),
    over('crossP50', floorPublish),
    ...(['commands', 'backToReleaser', 'overtaken', 'handoffP50', 'jain', 'handoffP99', 'clientCpu'] as const),
    'serverCpu',
  ],
  phases: ['throughput', 'waitMaxReaders', 'waitMaxWriters', 'crossP50', ...cost],
  quorumAlone: [
    'cycleP50',
    over('cycleP50', batonFairSingle, '× one\nserver'),
    ...(['throughput', 'secondRounds', 'cycleP99', 'waitMax', ...cost] as const),
  ],
  quorum: ['throughput', 'waitMax', 'crossP50', 'attempts', 'secondRounds', ...cost, 'jain', 'overtaken'],
  admission: ['admission', over('admission', floorBroadcast), 'messages', 'commands'],
  burst: ['drain', over('drain', floorPublish), 'inversions', 'overtaken', 'handoffP50', 'crossP50'],
  groups: ['releaseP50', 'commands', 'drain', 'throughput', 'overtaken'],
  jobs: ['drain', 'waitMaxSmall', 'mostAtOnce', 'mostOfGroup', 'commands', 'clientCpu'],
  drain: ['drain', 'throughput', 'releaseCost', 'commands', 'overtaken'],
  'crash-holder': ['nextGrant'],
  'crash-waiters': ['nextGrant', 'ordinaryHandoff'],
  idle: ['commandsPerSecond', 'residentPerWaiter', 'heapPerWaiter', 'redisPerWaiter'],
}

/** The measures that are compared at a glance, unless it is the first column alone. */
const glanced: Partial<Record<Subject, readonly Column['measure'][]>> = {
  mixed: ['throughput', 'waitMaxFair', 'waitMaxUnfair'],
  // Only hand-offs to another process: within a process, some locks hand over without Redis.
  loop: ['throughput', 'crossP50'],
  phases: ['throughput', 'waitMaxReaders', 'waitMaxWriters'],
  quorumAlone: ['cycleP50', 'cycleP99'],
  quorum: ['throughput', 'waitMax', 'attempts'],
  jobs: ['drain', 'waitMaxSmall'],
}

/** Returns the measures that are compared at a glance in a scenario, of those that have figures. */
export function headlinesOf(scenario: Scenario, entries: readonly Entry[]): readonly Measure[] {
  const known = columns(scenario, entries).map(({ measure }) => measure)
  const chosen = glanced[subjectOf(scenario)] ?? known.slice(0, 1)
  return chosen.filter(measure => known.includes(measure))
}

/** Measures that must be 0, each with its name in reports. The column 'faults' shows the measures that are above 0. */
const faults: readonly (readonly [Measure, string])[] = [
  ['overlaps', 'overlaps'],
  ['starved', 'starved'],
  ['unfinished', 'unfinished'],
  ['errors', 'errors'],
]

export interface Content {
  readonly columns: readonly Column[]
  /** For each lock that was measured: its name, a cell for each column, and its faults. */
  readonly rows: readonly string[][]
  /** Why locks have fewer figures than there were rounds, or none. */
  readonly shortcomings: readonly string[]
}

/** Returns the table of a scenario, with at most `most` columns. */
export function contentOf(results: Results, scenario: Scenario, most: number): Content {
  const entries = entriesOf(results, scenario)
  const measured = entries.filter(entry => entry.measured.length > 0)
  const shown = columns(scenario, measured).slice(0, most)
  const rows = measured.map(entry => {
    const { rival, mark } = entry
    const cells = shown.map(column => (column.over ? ratio(entry, column, measured) : cell(entry, column)))
    return [mark ? `${rival.name}\n${mark}` : rival.name, ...cells, faultsOf(entry)]
  })
  const reasons = new Map<string, string[]>()
  for (const { rival, shortcomings } of entries) {
    for (const text of shortcomings) reasons.set(text, [...(reasons.get(text) ?? []), rival.name])
  }
  return { columns: shown, rows, shortcomings: [...reasons].map(([text, names]) => `${names.join(', ')}: ${text}`) }
}

/** Returns the columns for which there are figures. */
function columns(scenario: Scenario, entries: readonly Entry[]): readonly Column[] {
  const all = columnsOf[subjectOf(scenario)].map(each =>
    typeof each === 'string' ? { measure: each, head: heads[each][0] } : each,
  )
  return all.filter(({ measure, over }) => {
    const having = entries.filter(entry => entry.spread(measure))
    return over ? having.some(({ rival }) => rival.name === over) : having.length > 0
  })
}

/** Returns what the heads of these columns mean, or of all. */
export function meaningsOf(columns?: readonly Column[]): string[] {
  const isShown = (measure: string) => !columns || columns.some(column => column.measure === measure)
  const known = Object.entries(heads).filter(([measure]) => isShown(measure))
  return known.flatMap(([, [, meaning]]) => meaning || [])
}

function cell({ spread }: Entry, { measure }: Column): string {
  const found = spread(measure)
  if (!found) return '–'
  // The growth of a process's memory, less than what it varies by anyway.
  if (found.low < 0) return 'too small'
  const scale = words[measure].unit === 'share' ? 100 : 1
  const [median, low, high] = [found.median, found.low, found.high].map(value => number(scale * value))
  return low === high ? median! : `${median}\n${low}–${high}`
}

function ratio(entry: Entry, { measure, over }: Column, all: readonly Entry[]): string {
  const [one, other] = [entry, all.find(({ rival }) => rival.name === over)].map(each => each?.spread(measure)?.median)
  return one === undefined || other === undefined ? '–' : (one / other).toFixed(2)
}

function faultsOf({ spread, trials }: Entry): string {
  const found = faults.flatMap(([measure, name]) => {
    const most = spread(measure)?.high ?? 0
    return most > 0 ? [`${number(most)} ${name}`] : []
  })
  const tried = trials.filter(({ outcome }) => outcome !== 'skipped')
  const failed = tried.filter(({ outcome }) => outcome === 'failed')
  if (failed.length > 0) found.push(`${failed.length} of ${tried.length} measurements failed`)
  return found.join('\n') || '0'
}

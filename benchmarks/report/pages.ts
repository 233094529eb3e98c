/**
 * Writes what the documentation shows of the benchmark from the raw results in benchmarks/results/: the section
 * "Results" of docs/benchmarks.md, the picture of README.md, and the picture's text. A test checks that the files match
 * the raw results.
 *
 *   npx tsx benchmarks/report/pages.ts
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { markdownTable } from 'markdown-table'
import { lockOf, type Results, type Scenario } from '../contract.ts'
import { scenarios } from '../scenarios.ts'
import { contentOf, meaningsOf } from './columns.ts'
import { capital } from './html-measures.ts'
import { alternative, picture } from './picture.ts'
import { subjectOf } from './subject.ts'
import { attainments } from './verdict.ts'

const root = new URL('../../', import.meta.url)
const results = new URL('benchmarks/results/', root)
const begin = '<!-- from benchmarks/results by benchmarks/report/pages.ts -->\n'
const end = '<!-- end of results -->\n'

/** Each function returns the text of its file, given what is there now. */
const files = {
  'docs/benchmarks.md': (now: string) => {
    const [head, rest] = now.split(begin) as [string, string]
    return `${head}${begin}\n${section()}\n${rest.slice(rest.indexOf(end))}`
  },
  'docs/pictures/waits.svg': () => picture(read('all.json')),
  'README.md': (now: string) => now.replace(/^!\[.*\]\[picture\]$/m, `![${alternative(read('all.json'))}][picture]`),
} as const

type File = keyof typeof files

export const names = Object.keys(files) as File[]

/** Returns the file with its generated part up to date. */
export function written(file: File): string {
  return files[file](present(file))
}

export function present(file: File): string {
  return readFileSync(new URL(file, root), 'utf8')
}

/** The runs that do not measure mutexes in Redis, each with its heading. A file may be missing. */
const ofKinds = {
  'semaphores.json': 'Semaphores',
  'semaphore-and-mutex.json': 'Semaphore and mutex, seven rounds',
  'groups.json': 'Groups',
  'semaphore-before.json': 'The semaphore before there were groups',
  'read-write.json': 'Read-write locks',
  'quorum.json': 'Several servers',
  'quorum-rtt-1.json': 'Several servers, with 1 ms of network delay',
  'elsewhere.json': 'Other ways to lock',
} as const

function read(name: string): Results {
  return JSON.parse(readFileSync(new URL(name, results), 'utf8'))
}

/**
 * Describes the main runs first. A goal that one repetition of them missed (all-2.json, rtt-1-2.json, and so on) does
 * not count as reached.
 */
function section(): string {
  const [all, rtt] = [read('all.json'), read('rtt-1.json')]
  const repetitions = readdirSync(results).filter(name => /^(all|rtt-1)-\d+\.json$/.test(name))
  const others = repetitions.sort().map(name => [name, read(name)] as const)
  const again = others.map(([, run]) => run)
  const tables = (which: (scenario: Scenario) => boolean) =>
    inOrder(all, rtt)
      .filter(which)
      .flatMap(scenario => [
        ...table(all, scenario),
        ...table(rtt, { ...scenario, title: `${scenario.title}, with 1 ms of network delay` }),
      ])
  const isFirst = (scenario: Scenario) => scenario.name === '2x8-hold5' || subjectOf(scenario) === 'uncontended'
  const isHot = (scenario: Scenario) => subjectOf(scenario) === 'loop' && scenario.hold === 0
  return [
    ...about('all.json', all),
    ...others.map(([name, { date }]) => `Also considered: ${link(name, date)}.\n`),
    ...tables(isFirst),
    '### Goals',
    '',
    '2 × 8 means 2 processes with 8 waiters each. A ratio (÷) compares trials of the same round. A hand-off goal is reached only if the',
    'median of all hand-offs and the median of hand-offs to another process both reach it. “Not steady” means that another run on the',
    'same machine missed the goal.',
    '',
    ...goals(all, again),
    `With \`--rtt 1\` (${link('rtt-1.json', rtt.date)}):`,
    '',
    ...goals(rtt, again),
    ...tables(scenario => !isFirst(scenario) && !isHot(scenario)),
    '### Loops with nothing inside the lock',
    '',
    'If the waiters of a lock poll, the lock mostly goes straight back to the caller that released it, because only this caller is awake.',
    'Its throughput is then that of a single caller, and it has few hand-offs: see [why pollers look fast](#why-pollers-look-fast).',
    '',
    ...tables(isHot),
    ...Object.entries(ofKinds).flatMap(([file, title]) =>
      existsSync(new URL(file, results)) ? ofKind(file, title) : [],
    ),
    '### What the columns mean',
    '',
    ...meaningsOf().map(text => `* ${text}`),
    '* × and the name of a lock: the median of the figure before, divided by that of this lock',
    '* faults: starved waiters, calls that never returned, errors and overlaps, of the round with the most of them',
    '',
  ].join('\n')
}

/** Describes a run of one kind of lock. Scenarios of mutexes, if it has them for comparison, are left out. */
function ofKind(file: string, title: string): string[] {
  const run = read(file)
  const own = inOrder(run).filter(scenario => lockOf(scenario) !== 'mutex')
  const tables = (own.length > 0 ? own : inOrder(run)).flatMap(scenario => table(run, scenario, '####'))
  return [`### ${title}`, '', ...about(file, run), ...(own.length > 0 ? goals(run) : []), ...tables]
}

/** Returns the scenarios of these runs in the benchmark's present order, which may differ from that of an older run. */
function inOrder(...runs: readonly Results[]): readonly Scenario[] {
  const names = new Set(runs.flatMap(({ scenarios }) => scenarios.map(({ name }) => name)))
  return scenarios.filter(({ name }) => names.has(name))
}

function link(file: string, date: string): string {
  return `[${file}](../benchmarks/results/${file}), ${date.slice(0, 10)}`
}

function about(file: string, { date, machine, options, rivals, trials, notes }: Results): string[] {
  const busy = trials.filter(({ busy = 0 }) => busy > 0.05).length
  const versions = rivals.flatMap(({ name, version }) => (version ? [`${name} ${version}`] : [])).join(', ')
  const run =
    `${link(file, date)}: ${machine.cores} cores (${machine.cpu}), ${machine.system}, Node ${machine.node}, ${machine.redis}; ` +
    `${options.rounds} rounds of ${options.seconds} s, cores ${machine.warmCores ? '' : 'not '}kept awake. ` +
    `In ${busy} of ${trials.length} trials, other programs used more than 5 % of the cores.`
  const others = notes.filter(note => !/^Cores|^The machine was busy/.test(note))
  return [run, `Versions: ${versions}.`, ...others].flatMap(text => [text, ''])
}

function goals(run: Results, others: readonly Results[] = []): string[] {
  const rows = attainments(run, others).map(({ what, goal, measured, verdict }) => {
    return [what, goal, measured, verdict === 'reached' ? verdict : `**${verdict}**`]
  })
  if (rows.length === 0) return []
  return [markdownTable([['measure', 'goal', 'measured', ''], ...rows], { align: ['l', 'r', 'r', 'l'] }), '']
}

function table(results: Results, scenario: Scenario, level = '###'): string[] {
  const { columns, rows, shortcomings } = contentOf(results, scenario, 9)
  // Locks that take no part in a scenario are not mentioned.
  const reasons = shortcomings.filter(text => !text.includes(': skipped: ')).map(text => `* ${text}`)
  if (rows.length + reasons.length === 0) return []
  const heads = columns.map(({ head, over }) => (over ? `× ${over}` : head.replace('-\n', '').replace('\n', ' ')))
  const lines = rows.map(row => [
    ...row.slice(0, -1).map(text => text.replace(/\n(.*)/, ' ($1)')),
    row.at(-1)!.replaceAll('\n', ', '),
  ])
  const shown = markdownTable([['lock', ...heads, 'faults'], ...lines], { align: ['l', ...heads.map(() => 'r'), 'l'] })
  return [`${level} ${capital(scenario.title)}`, shown, ...(reasons.length > 0 ? [reasons.join('\n')] : [])].flatMap(
    text => [text, ''],
  )
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  for (const file of names) writeFileSync(new URL(file, root), written(file))
}

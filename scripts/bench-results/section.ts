/**
 * Generates the text of the pages about the benchmark: the runs, the goals reached and missed, and a table for each
 * scenario.
 */
import { markdownTable } from 'markdown-table'
import { lockOf, type Measure, type Results, type Scenario, type Trial } from '../../benchmarks/contract.ts'
import { type Goal, measured, ranged } from '../../benchmarks/report/goal.ts'
import { delayed, groups, otherKinds, quorum, unthrottled } from '../../benchmarks/report/goals.ts'
import { capital } from '../../benchmarks/report/html-measures.ts'
import { roundsOf } from '../../benchmarks/report/rounds.ts'
import { type Subject, subjectOf } from '../../benchmarks/report/subject.ts'
import { verdict } from '../../benchmarks/report/verdict.ts'
import { type ScenarioName, scenarios } from '../../benchmarks/scenarios.ts'

type Column = readonly [head: string, measure: Measure, digits: number, elsewhere?: ScenarioName]

const speed: Column = ['acquisitions/s', 'throughput', 0]
const handoff: Column = ['hand-off p50, µs', 'handoffP50', 0]
const cross: Column = ['p50 to another process, µs', 'crossP50', 0]
const longest: Column = ['longest wait, ms', 'waitMax', 0]
const starved: Column = ['starved', 'starved', 0]
const commands: Column = ['commands per acquisition', 'commands', 2]
const overtaken: Column = ['overtaken by at most', 'overtaken', 0]
const cycle: Column = ['lock + release p50, µs', 'cycleP50', 1]
const cycles: Column = ['cycles/s', 'throughput', 0]
const secondRounds: Column = ['second rounds', 'secondRounds', 3]

const columns: Readonly<Record<Subject, readonly Column[]>> = {
  loop: [
    ...[speed, cross, longest, starved, commands, handoff, overtaken],
    ['back to the releaser', 'backToReleaser', 2],
    ["Jain's index", 'jain', 3],
  ],
  mixed: [
    ...[speed, cross],
    ['longest wait, fair, ms', 'waitMaxFair', 0],
    ['longest wait, unfair, ms', 'waitMaxUnfair', 0],
    ...[starved, commands],
  ],
  phases: [
    ...[speed],
    ['longest wait, readers, ms', 'waitMaxReaders', 0],
    ['longest wait, writers, ms', 'waitMaxWriters', 0],
    ...[starved, cross, commands],
  ],
  quorumAlone: [...[cycle], ['p99, µs', 'cycleP99', 1], ...[cycles, longest, commands, secondRounds]],
  quorum: [...[speed, longest, starved, cross], ['attempts', 'attempts', 2], ...[commands, secondRounds, overtaken]],
  admission: [['until all run, ms', 'admission', 2], ['messages', 'messages', 0], commands],
  uncontended: [...[cycle, cycles, commands], ['server CPU, µs', 'serverCpu', 1], ['client CPU, µs', 'clientCpu', 1]],
  burst: [['drain, ms', 'drain', 0], ['inverted pairs', 'inversions', 3], overtaken, handoff],
  groups: [['script of a release p50, µs', 'releaseP50', 1], commands, ['drain, ms', 'drain', 0], speed],
  jobs: [
    ['all jobs, ms', 'drain', 0],
    ['longest wait, small tenants, ms', 'waitMaxSmall', 1],
    ['at once', 'mostAtOnce', 0],
    ['of one tenant', 'mostOfGroup', 0],
    commands,
    ['client CPU, µs', 'clientCpu', 0],
  ],
  drain: [['drain, ms', 'drain', 1], speed, ['server time per release, µs', 'releaseCost', 1], commands],
  'crash-holder': [['next grant, ms', 'nextGrant', 1]],
  'crash-waiters': [
    ['next grant, ms', 'nextGrant', 2],
    ['without the crash, ms', 'ordinaryHandoff', 2],
  ],
  idle: [
    ['commands/s', 'commandsPerSecond', 2],
    ['client heap per waiter, B', 'heapPerWaiter', 0],
    ['Redis memory per waiter, B', 'redisPerWaiter', 0],
  ],
}

/**
 * The scenario of the first table: callers do some work while they hold the lock, as callers in real programs do. Only
 * the last column of the table comes from another scenario, idle-1000.
 */
const headline: ScenarioName = '2x8-hold5'
const headlines: readonly Column[] = [
  ...[speed, cross, longest, starved, commands],
  ['commands/s, 1,000 parked waiters', 'commandsPerSecond', 2, 'idle-1000'],
]

const pollers =
  'If the waiters of a lock poll, the lock mostly goes straight back to the caller that released it, because only this caller is awake. ' +
  'Its throughput is then that of a single caller, and it has few hand-offs: see [why pollers look fast](#why-pollers-look-fast).'

/**
 * Describes the main runs. `others` are repetitions of these runs, by file name. A goal that one repetition missed does
 * not count as reached.
 */
export function section(all: Results, rtt: Results, others: Readonly<Record<string, Results>> = {}): string {
  const tables = (which: (scenario: Scenario) => boolean) =>
    ordered(all, rtt)
      .filter(scenario => lockOf(scenario) === 'mutex' && which(scenario))
      .flatMap(scenario => [
        ...table(all, scenario),
        ...table(rtt, { ...scenario, title: `${scenario.title}, with 1 ms of network delay` }),
      ])
  return [
    run('all.json', all),
    ...Object.entries(others).map(([name, { date }]) => `\nAlso considered: ${link(name, date)}.`),
    '',
    ...table(all, { ...known(headline), title: `work inside the lock: ${known(headline).title}` }, headlines),
    ...tables(isAlone),
    '### Goals',
    '',
    'Each figure is the median of the rounds, with the range in parentheses. 2 × 8 means 2 processes with 8 waiters each. A ratio (÷)',
    'compares trials of the same round. A hand-off goal is reached only if the median of all hand-offs and the median of hand-offs to',
    'another process both reach it. “Not steady” means that another run on the same machine missed the goal.',
    '',
    reach(unthrottled, all, Object.values(others)),
    '',
    `With \`--rtt 1\` (${link('rtt-1.json', rtt.date)}):`,
    '',
    reach(delayed, rtt, Object.values(others)),
    '',
    ...tables(scenario => !isAlone(scenario) && !isHot(scenario)),
    '### Loops with nothing inside the lock',
    '',
    pollers,
    '',
    ...tables(isHot),
  ].join('\n')
}

/** Returns the section for a run that measures semaphores, read-write locks or a quorum, or mutexes outside Redis. */
export function sectionOfKind(title: string, file: string, results: Results): string {
  const goals = [...otherKinds, ...quorum, ...groups].filter(goal => verdict(goal, results, []) !== 'not measured')
  const all = ordered(results)
  const own = all.filter(scenario => lockOf(scenario) !== 'mutex')
  const tables = (own.length > 0 ? own : all)
    .flatMap(scenario => table(results, scenario))
    .map(line => line.replace(/^###/, '####'))
  const reached = goals.length > 0 ? [reach(goals, results, []), ''] : []
  return [`### ${title}`, '', run(file, results), '', ...reached, ...tables].join('\n')
}

function known(name: ScenarioName): Scenario {
  return scenarios.find(scenario => scenario.name === name) as Scenario
}

/**
 * Returns the scenarios of these runs in the benchmark's present order, which may differ from the order of an older
 * run.
 */
function ordered(...runs: readonly Results[]): readonly Scenario[] {
  const names = new Set(runs.flatMap(({ scenarios }) => scenarios.map(({ name }) => name)))
  return scenarios.filter(({ name }) => names.has(name))
}

function isAlone(scenario: Scenario): boolean {
  return subjectOf(scenario) === 'uncontended'
}

function isHot(scenario: Scenario): boolean {
  return subjectOf(scenario) === 'loop' && scenario.hold === 0
}

function link(file: string, date: string): string {
  return `[${file}](../benchmarks/results/${file}), ${date.slice(0, 10)}`
}

function run(file: string, { date, machine, options, rivals, trials, notes }: Results): string {
  const busy = trials.map(trial => trial.busy ?? 0).filter(share => share > 0.05).length
  const versions = rivals.flatMap(({ name, version }) => (version ? [`${name} ${version}`] : [])).join(', ')
  return [
    `${link(file, date)}: ${machine.cores} cores (${machine.cpu}), ${machine.system}, Node ${machine.node}, ${machine.redis}; ` +
      `${options.rounds} rounds of ${options.seconds} s, cores ${machine.warmCores ? '' : 'not '}kept awake. ` +
      `In ${busy} of ${trials.length} trials, other programs used more than 5 % of the cores.`,
    '',
    `Versions: ${versions}.`,
    ...notes.flatMap(note => (/^Cores|^The machine was busy/.test(note) ? [] : ['', note])),
  ].join('\n')
}

const said = {
  reached: 'reached',
  'not steady': '**not steady**',
  missed: '**missed**',
  'not measured': 'not measured',
} as const

function reach(goals: readonly Goal[], results: Results, others: readonly Results[]): string {
  const rows = goals.map(goal => {
    return [goal.what, goal.goal, measured(goal, results), said[verdict(goal, results, others)]]
  })
  return markdownTable([['measure', 'goal', 'measured', ''], ...rows], { align: ['l', 'r', 'r', 'l'] })
}

function table(results: Results, scenario: Scenario, chosen = columns[subjectOf(scenario)]): string[] {
  const { rounds } = results.options
  const of = (rival: string, name: string) =>
    results.trials.filter(trial => trial.rival === rival && trial.scenario === name)
  const rows = results.rivals.flatMap(({ name }) => {
    const trials = of(name, scenario.name)
    if (trials.every(({ outcome }) => outcome === 'skipped')) return []
    if (roundsOf(trials, rounds).measured.length === 0) return [[name, trials[0]?.reason ?? 'failed']]
    const cells = chosen.map(([, measure, digits, elsewhere]) => {
      const from = elsewhere ? of(name, elsewhere) : trials
      const { measured } = roundsOf(from, rounds)
      const figures = measured.map(({ figures }) => figures[measure]).filter(figure => figure !== undefined)
      if (figures.length === 0) return '–'
      return ranged(figures, digits) + (elsewhere ? fewer(from, rounds) : '')
    })
    return [[name + fewer(trials, rounds), ...cells]]
  })
  if (rows.length === 0) return []
  const head = ['lock', ...chosen.map(([name]) => name)]
  const align = ['l', ...chosen.map(() => 'r')]
  return [`### ${capital(scenario.title)}`, '', markdownTable([head, ...rows], { align }), '']
}

/**
 * Returns a note that says how many rounds a figure covers. The caller appends the note to the figure, or to the name
 * of the lock. It is empty if the figure covers all rounds of the run.
 */
function fewer(trials: readonly Trial[], rounds: number): string {
  const { measured, mark } = roundsOf(trials, rounds)
  if (mark === undefined) return ''
  const failed = trials.filter(({ outcome }) => outcome === 'failed').length
  return failed + measured.length === rounds ? ` (${failed} of ${rounds} rounds failed)` : ` (${mark})`
}

/** The text of the section: which runs, what was reached and what was missed, and a table for each question. */
import { markdownTable } from 'markdown-table'
import type { Measure, Results, Scenario, Trial } from '../../benchmarks/contract.ts'
import { roundsOf } from '../../benchmarks/report/rounds.ts'
import { delayed, type Goal, unthrottled } from './reach.ts'

type Column = readonly [head: string, measure: Measure, digits: number]

const handoff: Column = ['hand-off p50, µs', 'handoffP50', 0]
const loop: readonly Column[] = [
  ['acquisitions/s', 'throughput', 0],
  handoff,
  ['to another process, µs', 'crossP50', 0],
  ['back to the releaser', 'backToReleaser', 2],
  ['commands', 'commands', 2],
  ["Jain's index", 'jain', 3],
  ['overtaken by', 'overtaken', 0],
  ['longest wait, ms', 'waitMax', 0],
  ['starved', 'starved', 0],
]

const columns: Readonly<Record<Scenario['kind'], readonly Column[]>> = {
  loop,
  burst: [['drain, ms', 'drain', 0], ['inverted pairs', 'inversions', 3], ['overtaken by', 'overtaken', 0], handoff],
  drain: [
    ['drain, ms', 'drain', 1],
    ['acquisitions/s', 'throughput', 0],
    ['server, µs a release', 'releaseCost', 1],
    ['commands', 'commands', 2],
  ],
  'crash-holder': [['next grant, ms', 'nextGrant', 1]],
  'crash-waiters': [
    ['next grant, ms', 'nextGrant', 2],
    ['without the crash, ms', 'ordinaryHandoff', 2],
  ],
  idle: [
    ['commands/s', 'commandsPerSecond', 2],
    ['heap a waiter, B', 'heapPerWaiter', 0],
    ['Redis a waiter, B', 'redisPerWaiter', 0],
  ],
}

const uncontended: readonly Column[] = [
  ['lock + release p50, µs', 'cycleP50', 1],
  ['cycles/s', 'throughput', 0],
  ['commands', 'commands', 2],
  ['server, µs', 'serverCpu', 1],
  ['client, µs', 'clientCpu', 1],
]

export function section(all: Results, rtt: Results): string {
  return [
    run('benchmarks/results/all.json', all),
    '',
    '### Goals',
    '',
    'Medians of the rounds, and the range. Ratios are of trials of the same round.',
    '',
    reach(unthrottled, all),
    '',
    `With \`--rtt 1\` (${link('benchmarks/results/rtt-1.json', rtt)}):`,
    '',
    reach(delayed, rtt),
    '',
    ...all.scenarios.flatMap(scenario => table(all, scenario)),
    ...rtt.scenarios.flatMap(scenario =>
      table(rtt, { ...scenario, title: `${scenario.title}, with 1 ms of network delay` }),
    ),
  ].join('\n')
}

/** For those who read one table: sixteen waiters of two processes on one key. */
export function summary(all: Results): string {
  const shown = ['baton-unfair', 'baton-fair', 'redis-semaphore', 'redlock-10ms', 'redisson-lock', 'redisson-fair']
  const chosen: readonly Column[] = [
    ['acquisitions/s', 'throughput', 0],
    handoff,
    ['overtaken by at most', 'overtaken', 0],
    ['longest wait, ms', 'waitMax', 0],
  ]
  const scenario = all.scenarios.find(({ name }) => name === '2x8') as Scenario
  const rivals = all.rivals.filter(({ name }) => shown.includes(name) || name === 'floor-publish')
  return table({ ...all, rivals }, scenario, chosen)
    .slice(2)
    .join('\n')
}

function link(file: string, { date }: Results): string {
  return `[${file.split('/').at(-1)}](../${file}), ${date.slice(0, 10)}`
}

function run(file: string, results: Results): string {
  const { machine, options, rivals, trials, notes } = results
  const busy = trials.map(trial => trial.busy ?? 0).filter(share => share > 0.05).length
  const versions = rivals.flatMap(({ name, version }) => (version ? [`${name} ${version}`] : [])).join(', ')
  return [
    `${link(file, results)}: ${machine.cores} cores (${machine.cpu}), ${machine.system}, Node ${machine.node}, ${machine.redis}; ` +
      `${options.rounds} rounds of ${options.seconds} s, cores ${machine.warmCores ? '' : 'not '}kept awake. ` +
      `In ${busy} of ${trials.length} trials something else used more than 5 % of the cores.`,
    '',
    `Versions: ${versions}.`,
    ...notes.flatMap(note => (/^Cores|^The machine was busy/.test(note) ? [] : ['', note])),
  ].join('\n')
}

function reach(goals: readonly Goal[], results: Results): string {
  const rows = goals.map(goal => {
    const { what, digits = 2, unit = '' } = goal
    const figures = goal.figures(results)
    if (figures.length === 0) return [what, goal.goal, 'not measured', '']
    const middle = median(figures)
    return [
      what,
      goal.goal,
      `${ranged(figures, digits)} ${unit}`.trim(),
      goal.reached(middle) ? 'reached' : '**missed**',
    ]
  })
  return markdownTable([['measure', 'goal', 'measured', ''], ...rows], { align: ['l', 'r', 'r', 'l'] })
}

function columnsOf({ name, kind }: Scenario): readonly Column[] {
  return name === 'uncontended' ? uncontended : columns[kind]
}

function table(results: Results, scenario: Scenario, chosen = columnsOf(scenario)): string[] {
  const rows = results.rivals.flatMap(({ name }) => {
    const trials = results.trials.filter(trial => trial.rival === name && trial.scenario === scenario.name)
    const { measured } = roundsOf(trials, results.options.rounds)
    if (trials.every(({ outcome }) => outcome === 'skipped')) return []
    if (measured.length === 0) return [[name, trials[0]?.reason ?? 'failed']]
    const cells = chosen.map(([, measure, digits]) => {
      const figures = measured.map(({ figures }) => figures[measure]).filter(figure => figure !== undefined)
      return figures.length === 0 ? '–' : ranged(figures, digits)
    })
    return [[name + fewer(trials, results.options.rounds), ...cells]]
  })
  if (rows.length === 0) return []
  const head = ['lock', ...chosen.map(([name]) => name)]
  const align = ['l', ...chosen.map(() => 'r')]
  return [`### ${scenario.title}`, '', markdownTable([head, ...rows], { align }), '']
}

/** Behind the name of a lock: of how many rounds its figures are, unless of all. */
function fewer(trials: readonly Trial[], rounds: number): string {
  const { measured, mark } = roundsOf(trials, rounds)
  if (mark === undefined) return ''
  const failed = trials.filter(({ outcome }) => outcome === 'failed').length
  return failed + measured.length === rounds ? ` (${failed} of ${rounds} rounds failed)` : ` (${mark})`
}

/** The median, and the range where that says more. */
function ranged(figures: readonly number[], digits: number): string {
  const shown = (value: number) =>
    value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: value === 0 ? 0 : digits })
  const [low, high] = [shown(Math.min(...figures)), shown(Math.max(...figures))]
  return low === high ? low : `${shown(median(figures))} (${low}–${high})`
}

function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

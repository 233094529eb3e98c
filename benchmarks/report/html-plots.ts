/** Which plots a scenario gets, and their captions. A plot without any measurement is left out. */
import { lockOf, type Measure, type Results, type Scenario } from '../contract.ts'
import { type Entry, entriesOf, inOrder, type Spread } from './html-data.ts'
import { type Markup, markup } from './html-markup.ts'
import { format, tick, words } from './html-measures.ts'
import { axisFor } from './plot-axis.ts'
import { type Point, panelsPlot } from './plot-panels.ts'
import { axisOf, course, dots, hill, rowsPlot, tenths } from './plot-rows.ts'
import { type Subject, subjectOf } from './subject.ts'

const nothing = '–'
const write = (measure: Measure, spread: Spread | undefined) =>
  spread ? format(words[measure].unit, spread.median) : nothing

/** Median and range in words, for readers who cannot see the drawing. */
function say(measure: Measure, spread: Spread | undefined): string {
  if (!spread) return 'not measured'
  const [low, high] = [spread.low, spread.high].map(value => format(words[measure].unit, value))
  return `${write(measure, spread)}${spread.rounds > 1 ? `, ${low} to ${high} in ${spread.rounds} rounds` : ''}`
}

export function plotsOf(scenario: Scenario, entries: readonly Entry[]): Markup {
  const subject = subjectOf(scenario)
  const small = smallPlots[subject].map(([measure, description, second]) =>
    dotPlot(entries, measure, description, second),
  )
  // Without waiting, there is nothing to share; and the two parts of a mixed crowd are not meant to have equal shares.
  const shared = !['uncontended', 'mixed', 'phases', 'quorumAlone'].includes(subject)
  return markup`${handoffPlot(entries)}<div class="pair">${small}${shared && fairnessPlot(entries)}</div>`
}

type Small = readonly [measure: Measure, description: string, second?: Measure]

const commands: Small = ['commands', 'Redis commands that clients sent for each acquisition. Less is better.']
const drained: Small = ['drain', 'From the first release until the last of the queue has had its turn. Less is better.']
const nextGrant: Small = [
  'nextGrant',
  'Time until somebody has the lock. Less is better. The short stroke: the same without a crash.',
  'ordinaryHandoff',
]

/** The measures that answer each kind's question. All others are in the table. */
const smallPlots: Readonly<Record<Subject, readonly Small[]>> = {
  uncontended: [
    ['cycleP50', 'From asking to the return of release. Less is better.'],
    ['throughput', 'More is better.'],
    commands,
  ],
  mixed: [
    ['throughput', 'Of both halves together. More is better.'],
    ['waitMaxFair', 'A turn of the queue, and of those who have joined it by waiting. Less is better.'],
    ['waitMaxUnfair', 'The time after which they join the queue, and a turn of it. Less is better.'],
  ],
  loop: [
    ['throughput', 'More is better, but worth little where a few waiters got most of it: see fairness.'],
    commands,
    ['waitMax', 'Less is better. The short stroke: the median wait.', 'waitP50'],
  ],
  phases: [
    ['throughput', 'Of readers and writers together. More is better.'],
    ['waitMaxReaders', 'A turn of a writer, and what is left of the readers’ own. Less is better.'],
    ['waitMaxWriters', 'The turns of the writers before, and of the readers between. Less is better.'],
    commands,
  ],
  quorumAlone: [
    ['cycleP50', 'From asking to the return of release. Less is better. The short stroke: p99.', 'cycleP99'],
    ['throughput', 'More is better.'],
    commands,
  ],
  quorum: [
    ['throughput', 'More is better, but worth little where a few waiters got most of it: see fairness.'],
    ['waitMax', 'Less is better. The short stroke: the median wait.', 'waitP50'],
    ['attempts', 'How often the servers were asked for each acquisition. Polls and split votes ask in vain.'],
    commands,
  ],
  admission: [
    ['admission', 'From the call of the writer’s release until the last reader runs. Less is better.'],
    ['messages', 'That all clients together received. One for each client with readers is the least.'],
    commands,
  ],
  burst: [
    drained,
    ['inversions', 'Share of pairs that were granted against the order of asking. 0: the order was kept.'],
    commands,
  ],
  drain: [
    drained,
    ['releaseCost', 'Server time of one release with the whole queue behind it. Less is better.'],
    commands,
  ],
  'crash-holder': [nextGrant],
  'crash-waiters': [nextGrant],
  idle: [
    ['commandsPerSecond', 'Sent by all parked waiters together. Less is better.'],
    ['heapPerWaiter', 'Of the client’s JavaScript heap. Less is better.'],
    ['redisPerWaiter', 'Memory of the server. Less is better.'],
  ],
}

function dotPlot(entries: readonly Entry[], measure: Measure, description: string, also?: Measure): Markup | undefined {
  const shown = entries.filter(entry => entry.spread(measure))
  if (shown.length === 0) return undefined
  const { title, unit } = words[measure]
  const spreads = shown.flatMap(entry => [entry.spread(measure), also && entry.spread(also)])
  const values = spreads.flatMap(spread => (spread ? [spread.low, spread.median, spread.high] : []))
  const axis = axisFor(values, value => tick(unit, value), unit === 'share' ? 'linear' : undefined)
  // A lock without a figure keeps its row if it was meant to be measured: the missing figure is a result too.
  const rows = entries.flatMap(entry => {
    const [spread, second] = [entry.spread(measure), also && entry.spread(also)]
    const failed = entry.trials.some(({ outcome }) => outcome === 'failed')
    const measured = entry.measured.length > 0
    if (!spread && !measured && !failed) return []
    const why = measured ? nothing : 'failed'
    const more = also && second ? `; ${words[also].title.toLowerCase()} ${write(also, second)}` : ''
    return {
      rival: entry.rival,
      mark: entry.mark,
      drawing: spread && dots(spread, axis, second),
      words: spread ? say(measure, spread) + more : why,
      cells: [spread ? write(measure, spread) : why],
    }
  })
  return rowsPlot({ title, description, heads: ['median'], axis, axisTitle: title, rows })
}

/** A hand-off figure must be read together with the other two, which show whether it was a real hand-off. */
const handoffColumns = [
  ['handoffP50', 'p50'],
  ['handoffP99', 'p99'],
  ['backToReleaser', 'to itself'],
  ['jain', 'Jain'],
] as const satisfies readonly (readonly [Measure, string])[]

function handoffPlot(entries: readonly Entry[]): Markup | undefined {
  const shown = entries.flatMap(entry => (entry.handoffs ? [{ ...entry, handoffs: entry.handoffs }] : []))
  if (shown.length === 0) return undefined
  const axis = axisOf(
    shown.map(({ handoffs }) => handoffs),
    value => format('µs', value),
  )
  const columns = handoffColumns.filter(([measure]) => shown.some(({ spread }) => spread(measure)))
  const rows = shown.map(({ rival, mark, handoffs, spread }) => ({
    rival,
    mark,
    drawing: hill(
      handoffs,
      axis,
      (['handoffP50', 'handoffP90', 'handoffP99'] as const).map(measure => spread(measure)?.median),
    ),
    words: columns.map(([measure]) => `${words[measure].title} ${say(measure, spread(measure))}`).join('; '),
    cells: columns.map(([measure]) => write(measure, spread(measure))),
  }))
  return rowsPlot({
    title: 'Distribution of the hand-off latency',
    description:
      'From the call of release to the next owner’s return from acquire. Strokes, from long to short: p50, p90, p99. Each ' +
      'hill is scaled to its own peak. “To itself”: the share of acquisitions that went straight back to the waiter that had ' +
      'just released; those are no hand-offs, and not in the hill.',
    heads: columns.map(([, head]) => head),
    axis,
    axisTitle: 'Hand-off latency',
    height: 'tall',
    rows,
  })
}

function fairnessPlot(entries: readonly Entry[]): Markup | undefined {
  const rows = entries.flatMap(({ rival, mark, fairness, spread }) => {
    if (!fairness) return []
    const course10 = fairness.map(value => value.toFixed(2)).join(', ')
    const words = `Jain’s index in each part of the trial: ${course10}`
    return [{ rival, mark, drawing: course(fairness), words, cells: [write('jain', spread('jain'))] }]
  })
  if (rows.length === 0) return undefined
  return rowsPlot({
    title: 'Fairness over time',
    description:
      'Jain’s index of the acquisitions of all waiters within each tenth of the trial, from 0 (bottom) to 1 (top, dotted: all ' +
      'got as many); the figure is that of the whole trial. With few acquisitions a waiter, a tenth looks less fair than ' +
      'the whole.',
    heads: ['whole'],
    axis: tenths,
    axisTitle: 'Part of the trial',
    height: 'middle',
    rows,
  })
}

/** Measures whose growth with the queue is the cost of waiting. */
const costs: readonly Small[] = [
  ['commands', 'Redis commands an acquisition. A lock whose waiters poll, or all wake up, climbs with their number.'],
  ['serverCpu', 'CPU time of the server an acquisition.'],
  ['releaseCost', 'Server time of one release.'],
]

/**
 * For each cost, the mutex scenarios that show it: those with one key and no time in the lock that differ in their
 * number of waiters, and the drained queues. A lone waiter has no contention, so it shows nothing about waiting.
 */
export function costOfWaiting(results: Results): Markup | undefined {
  const columns = results.scenarios
    .filter(scenario => lockOf(scenario) === 'mutex')
    .filter(({ kind, keys, hold }) => (kind === 'loop' && keys === 1 && hold === 0) || kind === 'drain')
    .map(scenario => ({
      title: scenario.title,
      waiters: scenario.processes * scenario.waiters,
      entries: entriesOf(results, scenario),
    }))
    .filter(({ waiters }) => waiters > 1)
    .sort((a, b) => a.waiters - b.waiters)
  const plots = costs.map(cost => costPlot(results, columns, cost))
  if (plots.every(plot => plot === undefined)) return undefined
  return markup`<section id="cost"><h2>Cost against the number of waiters</h2>
<p>Each panel shows one lock, with all others behind it in grey.</p>
${plots}</section>`
}

interface Column {
  readonly title: string
  readonly waiters: number
  readonly entries: readonly Entry[]
}

function costPlot(results: Results, all: readonly Column[], [measure, description]: Small): Markup | undefined {
  const { title, unit } = words[measure]
  const columns = all.filter(({ entries }) => entries.some(entry => entry.spread(measure)))
  if (columns.length < 2) return undefined
  const series = inOrder(results.rivals).flatMap(rival => {
    const own = columns.map(({ waiters, entries }) => ({
      waiters,
      entry: entries.find(entry => entry.rival.name === rival.name),
    }))
    const points = own.map(({ waiters, entry }): Point => [waiters, entry?.spread(measure)?.median])
    const few = own.filter(({ entry }) => entry?.mark).map(({ waiters }) => format('count', waiters))
    const mark = few.length > 0 ? `fewer rounds with ${few.join(', ')} waiters` : undefined
    const taken = points.filter((point): point is readonly [number, number] => point[1] !== undefined)
    const said = taken.map(([x, y]) => `${format(unit, y)} with ${format('count', x)} waiters`).join('; ')
    return taken.length > 0 ? [{ rival, mark, points, taken, words: said }] : []
  })
  const xs = [...new Set(columns.map(({ waiters }) => waiters))]
  const x = axisFor(xs, String, 'log')
  const values = series.flatMap(({ taken }) => taken.map(([, y]) => y))
  return panelsPlot({
    title,
    description: `${description} From: ${columns.map(({ title }) => title).join(' · ')}.`,
    x: { ...x, ticks: xs.map(value => ({ at: x.at(value), text: tick('count', value) })) },
    y: axisFor(values, value => tick(unit, value)),
    axisTitle: 'Waiters (logarithmic)',
    series,
  })
}

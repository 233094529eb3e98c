/** Draws the plots of each scenario, with their captions. A plot without any figure is left out. */
import { lockOf, type Measure, type Results, type Scenario } from '../contract.ts'
import { type Entry, entriesOf, inOrder, type Spread } from './entries.ts'
import { type Markup, markup } from './html-markup.ts'
import { format, tick, words } from './html-measures.ts'
import { axisFor } from './plot-axis.ts'
import { type Point, panelsPlot } from './plot-panels.ts'
import { axisOf, course, dots, hill, rowsPlot, tenths } from './plot-rows.ts'
import { type Subject, subjectOf } from './subject.ts'

const nothing = '–'
const write = (measure: Measure, spread: Spread | undefined) =>
  spread ? format(words[measure].unit, spread.median) : nothing

/** Describes median and range in words, for people who cannot see the drawing. */
function say(measure: Measure, spread: Spread | undefined): string {
  if (!spread) return 'not measured'
  const [low, high] = [spread.low, spread.high].map(value => format(words[measure].unit, value))
  const median = write(measure, spread)
  return `${median}${spread.rounds > 1 ? `, between ${low} and ${high} in ${spread.rounds} rounds` : ''}`
}

export function plotsOf(scenario: Scenario, entries: readonly Entry[]): Markup {
  const subject = subjectOf(scenario)
  const small = smallPlots[subject].map(([measure, description, second]) =>
    dotPlot(entries, measure, description, second),
  )
  // These scenarios have no plot of fairness. A lone caller shares the lock with no other caller. Fair and unfair
  // callers of one key are not meant to have equal shares, and neither are readers and writers.
  const shared = !['uncontended', 'mixed', 'phases', 'quorumAlone', 'jobs'].includes(subject)
  return markup`${handoffPlot(entries)}<div class="pair">${small}${shared && fairnessPlot(entries)}</div>`
}

type Small = readonly [measure: Measure, description: string, second?: Measure]

const commands: Small = ['commands', 'Redis commands that clients sent per acquisition. Less is better.']
const drained: Small = [
  'drain',
  'Time from the first release until the last waiter in the queue has the lock. Less is better.',
]
const nextGrant: Small = [
  'nextGrant',
  'Time from the crash of the holder until the next waiter has the lock. Less is better. For comparison, the short stroke shows the time of a hand-off without a crash.',
  'ordinaryHandoff',
]

/** The most important measures of each kind of scenario. The table below the plots has all measures. */
const smallPlots: Readonly<Record<Subject, readonly Small[]>> = {
  uncontended: [
    ['cycleP50', 'Time from the call of acquire to the return of release. Less is better.'],
    ['throughput', 'Acquisitions per second. More is better.'],
    commands,
  ],
  mixed: [
    ['throughput', 'Acquisitions per second of fair and unfair callers together. More is better.'],
    [
      'waitMaxFair',
      'The longest wait of a fair caller, which waits for all callers ahead of it in the queue. Less is better.',
    ],
    [
      'waitMaxUnfair',
      'The longest wait of an unfair caller, which joins the queue if it waits too long. Less is better.',
    ],
  ],
  loop: [
    [
      'throughput',
      'Acquisitions per second. More is better, but the figure means little if a few waiters got most acquisitions.',
    ],
    commands,
    ['waitMax', 'The longest wait for the lock. Less is better. The short stroke is the median wait.', 'waitP50'],
  ],
  phases: [
    ['throughput', 'Acquisitions per second of readers and writers together. More is better.'],
    [
      'waitMaxReaders',
      'The longest wait of a reader. It waits until the writer ahead of it has had its turn. Less is better.',
    ],
    [
      'waitMaxWriters',
      'The longest wait of a writer, which waits for the writers ahead of it and the readers between them. Less is better.',
    ],
    commands,
  ],
  quorumAlone: [
    [
      'cycleP50',
      'Time from the call of acquire to the return of release. Less is better. The short stroke is the p99.',
      'cycleP99',
    ],
    ['throughput', 'Acquisitions per second. More is better.'],
    commands,
  ],
  quorum: [
    [
      'throughput',
      'Acquisitions per second. More is better, but the figure means little if a few waiters got most acquisitions.',
    ],
    ['waitMax', 'The longest wait for the lock. Less is better. The short stroke is the median wait.', 'waitP50'],
    [
      'attempts',
      'Attempts to get the lock, per acquisition. Less is better. Failed attempts count, too: polls that find the lock taken, and split votes, in which no caller gets a majority of the servers.',
    ],
    commands,
  ],
  admission: [
    [
      'admission',
      'Time from the call of the writer’s release until the last waiting reader has the lock. Less is better.',
    ],
    [
      'messages',
      'Messages that all clients together received when a writer released the lock. Each client with waiting readers needs at least one.',
    ],
    commands,
  ],
  burst: [
    drained,
    [
      'inversions',
      'Of all pairs of requests, the share in which the later request was granted first. 0 means that the order was kept.',
    ],
    commands,
  ],
  groups: [
    drained,
    ['releaseP50', 'Server time of a release, by the time of its script alone. Less is better.'],
    commands,
  ],
  jobs: [
    drained,
    ['waitMaxSmall', 'The longest wait of a job of the small tenants. Less is better.'],
    ['mostOfGroup', 'How many jobs of one tenant ran at a time, at most. The limit is 3.'],
  ],
  drain: [drained, ['releaseCost', 'Server time per release while the queue is drained. Less is better.'], commands],
  'crash-holder': [nextGrant],
  'crash-waiters': [nextGrant],
  idle: [
    ['commandsPerSecond', 'Commands that all waiters together send while they wait. Less is better.'],
    ['heapPerWaiter', 'Growth of the client’s JavaScript heap per waiter. Less is better.'],
    ['redisPerWaiter', 'Growth of the server’s memory per waiter. Less is better.'],
  ],
}

function dotPlot(entries: readonly Entry[], measure: Measure, description: string, also?: Measure): Markup | undefined {
  const shown = entries.filter(entry => entry.spread(measure))
  if (shown.length === 0) return undefined
  const { title, unit } = words[measure]
  const spreads = shown.flatMap(entry => [entry.spread(measure), also && entry.spread(also)])
  const values = spreads.flatMap(spread => (spread ? [spread.low, spread.median, spread.high] : []))
  const axis = axisFor(values, value => tick(unit, value), unit === 'share' ? 'linear' : undefined)
  // A lock that was tried keeps its row even if it has no figure, because a missing figure is a result, too.
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

/**
 * The columns beside the plot of hand-offs. The first two are latencies. The other two show how often the lock went
 * back to the waiter that had released it, and how evenly the waiters shared it.
 */
const handoffColumns = [
  ['handoffP50', 'p50'],
  ['handoffP99', 'p99'],
  ['backToReleaser', 'back'],
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
      'Time from the call of release until acquire returns to the next holder. The strokes, from long to short, are p50, p90 ' +
      'and p99. A hill is high where many hand-offs took this time; all hills have the same height. “Back” is the share of acquisitions that went straight back to the waiter ' +
      'that had just released; these acquisitions are not hand-offs, and the hill does not contain them.',
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
    const words = `Jain’s index in each tenth of the measurement: ${course10}`
    return [{ rival, mark, drawing: course(fairness), words, cells: [write('jain', spread('jain'))] }]
  })
  if (rows.length === 0) return undefined
  return rowsPlot({
    title: 'Fairness over time',
    description:
      'Jain’s index of all waiters in each tenth of the measurement, from 0 (bottom) to 1 (dotted line at the top: all waiters ' +
      'got equally many acquisitions). The figure on the right is the index of the whole measurement. If each waiter has only ' +
      'a few acquisitions, a tenth looks less fair than the whole.',
    heads: ['whole'],
    axis: tenths,
    axisTitle: 'Part of the measurement',
    height: 'middle',
    rows,
  })
}

/** Measures of the cost of waiting. They show how this cost grows with the number of waiters. */
const costs: readonly Small[] = [
  [
    'commands',
    'Redis commands per acquisition. The line rises with the number of waiters if they poll, or if all wake up at each release.',
  ],
  ['serverCpu', 'CPU time of the server per acquisition.'],
  ['releaseCost', 'Server time per release.'],
]

/**
 * Plots each cost against the number of waiters. The figures come from two kinds of mutex scenario: loops with one key
 * and a hold of 0 ms, and `drain`, in which a full queue empties. A lone waiter shows nothing about waiting, so
 * scenarios with one waiter are left out.
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
<p>Each panel shows one lock in colour and all other locks in grey.</p>
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
    const mark = few.length > 0 ? `with ${few.join(', ')} waiters, measured in fewer rounds` : undefined
    const taken = points.filter((point): point is readonly [number, number] => point[1] !== undefined)
    const said = taken.map(([x, y]) => `${format(unit, y)} with ${format('count', x)} waiters`).join('; ')
    return taken.length > 0 ? [{ rival, mark, points, taken, words: said }] : []
  })
  const xs = [...new Set(columns.map(({ waiters }) => waiters))]
  const x = axisFor(xs, String, 'log')
  const values = series.flatMap(({ taken }) => taken.map(([, y]) => y))
  return panelsPlot({
    title,
    description: `${description} Scenarios: ${columns.map(({ title }) => title).join(' · ')}.`,
    x: { ...x, ticks: xs.map(value => ({ at: x.at(value), text: tick('count', value) })) },
    y: axisFor(values, value => tick(unit, value)),
    axisTitle: 'Waiters (logarithmic)',
    series,
  })
}

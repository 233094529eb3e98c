/**
 * What the project has set itself to reach, each goal as a ratio or a figure of one run. A goal compares medians of the
 * rounds; ratios are taken within each round, side by side, and the median of these counts.
 */
import type { Measure, Results, Trial } from '../../benchmarks/contract.ts'

export interface Goal {
  readonly what: string
  readonly goal: string
  /** Each of these has to reach it. */
  readonly columns: readonly Column[]
  reached(median: number): boolean
  readonly digits?: number
  readonly unit?: string
}

interface Column {
  /** Absent: the only one, or the first. */
  readonly name?: string
  /** Of each round. Empty: the run does not have it. */
  figures(results: Results): readonly number[]
}

export const unthrottled: readonly Goal[] = [
  ratio('fair throughput, 2 × 8, hold 5 ms', 'throughput', '2x8-hold5', 'baton-fair', 'floor-publish', atLeast(0.98)),
  ratio(
    'unfair throughput, 2 × 8, hold 5 ms',
    'throughput',
    '2x8-hold5',
    'baton-unfair',
    'floor-publish',
    atLeast(0.97),
  ),
  handoff('fair hand-off p50, 2 × 8, hold 5 ms', '2x8-hold5', 'baton-fair', 'floor-publish', atMost(1.25)),
  handoff('unfair hand-off p50, 2 × 8, hold 5 ms', '2x8-hold5', 'baton-unfair', 'floor-publish', atMost(1.5)),
  within('unfair, longest wait ÷ median wait, hold 5 ms', '2x8-hold5', 'baton-unfair', 'waitMax', 'waitP50', atMost(5)),
  ...['fair', 'unfair'].map(mode =>
    ratio(
      `${mode}, client CPU an acquisition, 2 × 8, hold 5 ms`,
      'clientCpu',
      '2x8-hold5',
      `baton-${mode}`,
      'floor-publish',
      atMost(1.35),
    ),
  ),
  ...['fair', 'unfair'].map(mode =>
    figure(
      `${mode}, bytes an acquisition, 2 × 8, hold 5 ms`,
      'bytes',
      '2x8-hold5',
      `baton-${mode}`,
      atMost(350),
      0,
      'B',
    ),
  ),
  ...['fair', 'unfair'].flatMap(mode => [
    ratio(
      `uncontended lock + release, p50, ${mode}`,
      'cycleP50',
      'uncontended',
      `baton-${mode}`,
      'floor-set',
      atMost(1.12),
    ),
    figure(
      `uncontended, server time of one call, ${mode}`,
      'commandTime',
      'uncontended',
      `baton-${mode}`,
      atMost(3.5),
      1,
      'µs',
    ),
    figure(`uncontended, bytes an acquisition, ${mode}`, 'bytes', 'uncontended', `baton-${mode}`, atMost(350), 0, 'B'),
  ]),
  faults('overlaps, starved waiters, calls that never return, errors: redis-baton, everywhere'),
  figure('commands an acquisition, fair, 2 × 8, hold 5 ms', 'commands', '2x8-hold5', 'baton-fair', atMost(2.1), 2),
  ...['2x8', '2x100', '2x1000', 'drain-10', 'drain-10000'].flatMap(scenario => [
    figure(`commands an acquisition, fair, ${shown(scenario)}`, 'commands', scenario, 'baton-fair', atMost(2.1), 2),
    figure(`commands an acquisition, unfair, ${shown(scenario)}`, 'commands', scenario, 'baton-unfair', atMost(1.3), 3),
  ]),
  figure('idle, commands a second, fair', 'commandsPerSecond', 'idle-1000', 'baton-fair', atMost(2), 2),
  figure('idle, commands a second, unfair', 'commandsPerSecond', 'idle-1000', 'baton-unfair', atMost(2), 2),
  figure('client heap of a parked waiter, fair', 'heapPerWaiter', 'idle-1000', 'baton-fair', atMost(2_048), 0, 'B'),
  figure('client heap of a parked waiter, unfair', 'heapPerWaiter', 'idle-1000', 'baton-unfair', atMost(2_048), 0, 'B'),
  figure('Redis memory of a parked waiter, fair', 'redisPerWaiter', 'idle-1000', 'baton-fair', atMost(400), 0, 'B'),
  ratio('burst of 200, drain, fair', 'drain', 'burst-200', 'baton-fair', 'floor-publish', atMost(1.06)),
  figure('burst of 200, inverted pairs, fair', 'inversions', 'burst-200', 'baton-fair', atMost(0), 3),
  across(
    'server time of one fair release, 10,000 waiters ÷ 10',
    'releaseCost',
    'drain-10000',
    'drain-10',
    'baton-fair',
    atMost(1.5),
  ),
  within(
    'crash of 50 queued waiters, next grant ÷ ordinary hand-off, fair',
    'crash-waiters',
    'baton-fair',
    'nextGrant',
    'ordinaryHandoff',
    atMost(2),
  ),
  ...['fair', 'unfair'].map(mode =>
    best(
      `1,000 keys × 2 waiters, ${mode}, against the best rival with Redis`,
      'keys-1000',
      `baton-${mode}`,
      /^live-mutex/,
    ),
  ),
  handoff('fair hand-off p50, 2 × 8, hold 0', '2x8', 'baton-fair', 'floor-publish', atMost(1.3)),
  ...(
    [
      ['2x8', 0.85],
      ['2x100', 0.9],
      ['2x1000', 0.85],
    ] as const
  ).map(([scenario, least]) =>
    ratio(`fair throughput, ${shown(scenario)}`, 'throughput', scenario, 'baton-fair', 'floor-publish', atLeast(least)),
  ),
  best('fair throughput, 2 × 1,000, against the best rival of any kind', '2x1000', 'baton-fair'),
  ...['2x8', '2x100'].map(scenario =>
    ratio(`unfair throughput, ${shown(scenario)}`, 'throughput', scenario, 'baton-unfair', 'floor-blpop', atLeast(8)),
  ),
  ...['2x8', '2x100'].map(scenario =>
    figure(`unfair, Jain's index, ${shown(scenario)}`, 'jain', scenario, 'baton-unfair', atLeast(0.9), 3),
  ),
  ...['2x8', '2x100'].map(scenario =>
    figure(
      `unfair, longest wait, ${shown(scenario)}, hold 0`,
      'waitMax',
      scenario,
      'baton-unfair',
      atMost(100),
      0,
      'ms',
    ),
  ),
]

export const delayed: readonly Goal[] = [
  handoff('fair hand-off p50, 2 × 8, hold 5 ms', '2x8-hold5', 'baton-fair', 'floor-publish', atMost(1.05)),
  handoff('fair hand-off p50, 2 × 8, hold 0', '2x8', 'baton-fair', 'floor-publish', atMost(1.05)),
  handoff('fair hand-off p50, 2 × 8, hold 0, against Redisson', '2x8', 'baton-fair', 'redisson-fair', atMost(0.6)),
]

type Limit = Pick<Goal, 'goal' | 'reached'>

function atMost(limit: number): Limit {
  return { goal: `≤ ${limit.toLocaleString('en')}`, reached: median => median <= limit }
}

function atLeast(limit: number): Limit {
  return { goal: `≥ ${limit.toLocaleString('en')}`, reached: median => median >= limit }
}

function figure(
  what: string,
  measure: Measure,
  scenario: string,
  rival: string,
  limit: Limit,
  digits: number,
  unit = '',
): Goal {
  return {
    what,
    ...limit,
    digits,
    unit,
    columns: [{ figures: results => ofRounds(results, scenario, trial => trial(rival)?.[measure]) }],
  }
}

function ratio(what: string, measure: Measure, scenario: string, rival: string, to: string, limit: Limit): Goal {
  return { what: `${what}, × \`${to}\``, ...limit, columns: [ratios(measure, scenario, rival, to)] }
}

/**
 * All hand-offs, and those to another process: within a process some need no Redis, so the median of all may be that of the
 * easy ones. Every hand-off of the floor crosses.
 */
function handoff(what: string, scenario: string, rival: string, to: string, limit: Limit): Goal {
  const cross = { ...ratios('crossP50', scenario, rival, to), name: 'to another process' }
  return { what: `${what}, × \`${to}\``, ...limit, columns: [ratios('handoffP50', scenario, rival, to), cross] }
}

function ratios(measure: Measure, scenario: string, rival: string, to: string): Column {
  return {
    figures: results => ofRounds(results, scenario, trial => quotient(trial(rival)?.[measure], trial(to)?.[measure])),
  }
}

function within(what: string, scenario: string, rival: string, over: Measure, under: Measure, limit: Limit): Goal {
  return {
    what,
    ...limit,
    columns: [
      {
        figures: results => ofRounds(results, scenario, trial => quotient(trial(rival)?.[over], trial(rival)?.[under])),
      },
    ],
  }
}

function across(what: string, measure: Measure, many: string, few: string, rival: string, limit: Limit): Goal {
  return {
    what,
    ...limit,
    columns: [
      {
        figures: results =>
          ofRounds(results, many, trial => quotient(trial(rival)?.[measure], trial(rival, few)?.[measure])),
      },
    ],
  }
}

/**
 * Throughput as a ratio to that of the best rival. One that was not tried again keeps the figure it had: without it the
 * goal would be easier to reach in the later rounds.
 */
function best(what: string, scenario: string, rival: string, but?: RegExp): Goal {
  const figures = (results: Results) => {
    const others = results.rivals.filter(({ kind, name }) => kind === 'rival' && !but?.test(name))
    return ofRounds(results, scenario, trial => {
      const speeds = others
        .map(({ name }) => (trial(name) ?? before(results, scenario, name))?.throughput)
        .filter(speed => speed !== undefined)
      return speeds.length === 0 ? undefined : quotient(trial(rival)?.throughput, Math.max(...speeds))
    })
  }
  return { what, goal: '> 1', reached: median => median > 1, columns: [{ figures }] }
}

function faults(what: string): Goal {
  const figures = ({ trials }: Results) => {
    const ours = trials.filter(({ rival, outcome }) => rival.startsWith('baton') && outcome !== 'skipped')
    const all = ours.map(({ outcome, figures: { overlaps = 0, starved = 0, unfinished = 0, errors = 0 } }) =>
      outcome === 'failed' ? 1 : overlaps + starved + unfinished + errors,
    )
    return all.length === 0 ? [] : [Math.max(...all)]
  }
  return { what, goal: '0', digits: 0, reached: median => median === 0, columns: [{ figures }] }
}

function ofRounds(
  { trials, options }: Results,
  scenario: string,
  take: (of: (rival: string, elsewhere?: string) => Trial['figures'] | undefined) => number | undefined,
): number[] {
  const rounds = Array.from({ length: options.rounds }, (_, i) => i + 1)
  return rounds
    .map(round =>
      take(
        (rival, where = scenario) =>
          trials.find(
            trial =>
              trial.rival === rival &&
              trial.scenario === where &&
              trial.round === round &&
              trial.outcome === 'measured',
          )?.figures,
      ),
    )
    .filter(value => value !== undefined && Number.isFinite(value)) as number[]
}

/** The last figures of a rival that was not tried in all rounds. */
function before({ trials }: Results, scenario: string, rival: string): Trial['figures'] | undefined {
  const own = trials.filter(trial => trial.rival === rival && trial.scenario === scenario)
  if (!own.some(({ outcome }) => outcome === 'skipped')) return undefined
  return own.findLast(({ outcome }) => outcome === 'measured')?.figures
}

function quotient(over: number | undefined, under: number | undefined): number | undefined {
  return over === undefined || under === undefined ? undefined : over / under
}

function shown(scenario: string): string {
  return scenario
    .replace(/^(\d+)x(\d+)$/, (_, a, b) => `${a} × ${Number(b).toLocaleString('en')}`)
    .replace(/^drain-(\d+)$/, (_, n) => `${Number(n).toLocaleString('en')} queued`)
}

/**
 * A goal is a limit for a figure of one run, or for a ratio of two figures. Each round yields one figure or ratio, and
 * the median over the rounds is compared with the limit. A ratio compares two trials of the same round.
 */
import { type LockKind, lockOf, type Measure, type Results, type Trial } from '../contract.ts'

export interface Goal {
  readonly what: string
  readonly goal: string
  /**
   * The figures to compare with the limit. The goal is reached only if the median of every column is within the limit.
   */
  readonly columns: readonly Column[]
  reached(median: number): boolean
  readonly digits?: number
  readonly unit?: string
}

interface Column {
  /** The name of the column in reports. Absent in the first column. */
  readonly name?: string
  /** Returns one figure per round. Returns no figures if the run has not measured any. */
  figures(results: Results): readonly number[]
}

type Limit = Pick<Goal, 'goal' | 'reached'>

export function atMost(limit: number): Limit {
  return { goal: `≤ ${limit.toLocaleString('en')}`, reached: median => median <= limit }
}

export function atLeast(limit: number): Limit {
  return { goal: `≥ ${limit.toLocaleString('en')}`, reached: median => median >= limit }
}

export function figure(
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

export function ratio(what: string, measure: Measure, scenario: string, rival: string, to: string, limit: Limit): Goal {
  return { what: `${what} ÷ \`${to}\``, ...limit, columns: [ratios(measure, scenario, rival, to)] }
}

/**
 * Makes a goal with two columns, which compare `rival` with `to`. The first column compares the medians of all
 * hand-offs, and the second compares the medians of hand-offs to another process. The second column is needed because
 * some locks hand over within a process without asking Redis. Most of their hand-offs may be of this cheap kind. A
 * floor has no such hand-offs.
 */
export function handoff(what: string, scenario: string, rival: string, to: string, limit: Limit): Goal {
  const cross = { ...ratios('crossP50', scenario, rival, to), name: 'to another process' }
  return { what: `${what} ÷ \`${to}\``, ...limit, columns: [ratios('handoffP50', scenario, rival, to), cross] }
}

function ratios(measure: Measure, scenario: string, rival: string, to: string): Column {
  return {
    figures: results => ofRounds(results, scenario, trial => quotient(trial(rival)?.[measure], trial(to)?.[measure])),
  }
}

export function within(
  what: string,
  scenario: string,
  rival: string,
  over: Measure,
  under: Measure,
  limit: Limit,
): Goal {
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

export function across(what: string, measure: Measure, many: string, few: string, rival: string, limit: Limit): Goal {
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
 * Makes a goal for a writer's release: the release must admit all waiting readers within 1.5 times the time for a
 * single reader, plus 5 µs per reader.
 */
export function admission(what: string, many: string, one: string, rival: string): Goal {
  const allowed = (results: Results, single: number) => 1.5 * single + 0.005 * readersOf(results, many)
  return {
    what: `${what} ÷ (1.5 × the time for 1 reader + 5 µs per reader)`,
    ...atMost(1),
    columns: [
      {
        figures: results =>
          ofRounds(results, many, trial => {
            const single = trial(rival, one)?.admission
            return single && quotient(trial(rival)?.admission, allowed(results, single))
          }),
      },
    ],
  }
}

function readersOf({ scenarios }: Results, name: string): number {
  const { processes = 0, waiters = 0 } = scenarios.find(scenario => scenario.name === name) ?? {}
  return processes * waiters
}

/**
 * Makes a goal for the throughput of `rival`, divided by the throughput of the best other library. Libraries whose
 * names match `but` are ignored. If the run skipped later rounds of a library, its throughput in the last measured
 * round is used for them. If the library were ignored in those rounds, the goal would be easier to reach.
 */
export function best(what: string, scenario: string, rival: string, but?: RegExp): Goal {
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

/**
 * Makes a goal of 0 faults. The goal covers the rivals whose names match `rival`, in scenarios whose kind of lock is in
 * `kinds`. The faults of a trial are the sum of `measures`, or 1 if the trial failed. The trial with the most faults
 * decides.
 */
export function faults(what: string, kinds: readonly LockKind[], rival: RegExp, measures: readonly Measure[]): Goal {
  const figures = ({ trials, scenarios }: Results) => {
    const names = scenarios.filter(scenario => kinds.includes(lockOf(scenario))).map(({ name }) => name)
    const ours = trials.filter(trial => rival.test(trial.rival) && names.includes(trial.scenario))
    const all = ours
      .filter(({ outcome }) => outcome !== 'skipped')
      .map(({ outcome, figures }) =>
        outcome === 'failed' ? 1 : measures.reduce((sum, measure) => sum + (figures[measure] ?? 0), 0),
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

/**
 * Returns the figures of the last round in which the rival was measured, if it was skipped in other rounds. Otherwise
 * returns undefined.
 */
function before({ trials }: Results, scenario: string, rival: string): Trial['figures'] | undefined {
  const own = trials.filter(trial => trial.rival === rival && trial.scenario === scenario)
  if (!own.some(({ outcome }) => outcome === 'skipped')) return undefined
  return own.findLast(({ outcome }) => outcome === 'measured')?.figures
}

/** Describes what a run measured for a goal, such as '1.29 (1.10–1.40); to another process 1.31'. */
export function measured({ columns, digits = 2, unit = '' }: Goal, results: Results): string {
  const each = columns.flatMap(({ name, figures }) => {
    const all = figures(results)
    return all.length === 0 ? [] : [`${name ? `${name} ` : ''}${ranged(all, digits)} ${unit}`.trim()]
  })
  return each.join('; ')
}

/** Formats the median and the range. If all figures look the same once they are formatted, the range is left out. */
export function ranged(figures: readonly number[], digits: number): string {
  const shown = (value: number) =>
    value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: value === 0 ? 0 : digits })
  const [low, high] = [shown(Math.min(...figures)), shown(Math.max(...figures))]
  return low === high ? low : `${shown(median(figures))} (${low}–${high})`
}

export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

function quotient(over: number | undefined, under: number | undefined): number | undefined {
  return over === undefined || under === undefined ? undefined : over / under
}

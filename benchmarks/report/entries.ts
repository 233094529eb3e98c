/** Combines the rounds of each rival in one scenario, for all reports. */
import type { Distribution, Measure, Results, Scenario, Trial } from '../contract.ts'
import { type Rounds, roundsOf } from './rounds.ts'

export type RivalEntry = Results['rivals'][number]

/** The median, the minimum (`low`) and the maximum (`high`) of a measure over the rounds. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
  /** The number of rounds in which the measure was taken. */
  readonly rounds: number
}

/** The results of one rival in one scenario. */
export interface Entry extends Rounds {
  readonly rival: RivalEntry
  readonly trials: readonly Trial[]
  spread(measure: Measure): Spread | undefined
  /** The distribution of the hand-off times in all rounds together. */
  readonly handoffs: Distribution | undefined
  /** Jain's fairness index in each tenth of the trial. Each number is the median over the rounds. */
  readonly fairness: readonly number[] | undefined
}

/**
 * Sorts rivals: redis-baton, then floors (the least that Redis itself costs), then rivals that promise order, then the
 * others. Every plot has this order, so that a position always means the same rival. Sorting by hand-off latency would
 * favour locks whose hand-offs often stay within a process.
 */
export function inOrder(rivals: readonly RivalEntry[]): RivalEntry[] {
  const rank = ({ kind, fair }: RivalEntry) => (kind === 'baton' ? 0 : kind === 'floor' ? 1 : fair ? 2 : 3)
  return rivals.toSorted((a, b) => rank(a) - rank(b))
}

export function entriesOf(results: Results, scenario: Scenario): Entry[] {
  const trials = results.trials.filter(trial => trial.scenario === scenario.name)
  return inOrder(results.rivals)
    .map(rival =>
      entry(
        rival,
        trials.filter(trial => trial.rival === rival.name),
        results.options.rounds,
      ),
    )
    .filter(({ trials }) => trials.length > 0)
}

function entry(rival: RivalEntry, trials: readonly Trial[], all: number): Entry {
  const rounds = roundsOf(trials, all)
  const { measured } = rounds
  return {
    ...rounds,
    rival,
    trials,
    spread: measure => spreadOf(measured.map(({ figures }) => figures[measure])),
    handoffs: together(measured.map(({ handoffs }) => handoffs)),
    fairness: eachTenth(measured.map(({ fairness }) => fairness)),
  }
}

/** Computes the spread. Ignores missing values, which may be `null`, because JSON turns NaN into `null`. */
function spreadOf(values: readonly (number | null | undefined)[]): Spread | undefined {
  const sorted = values.filter(isNumber).sort((a, b) => a - b)
  if (sorted.length === 0) return undefined
  const [low, high] = [sorted[0]!, sorted.at(-1)!]
  const median = (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2
  return { median, low, high, rounds: sorted.length }
}

const isNumber = (value: unknown): value is number => Number.isFinite(value)

/** Returns the sum of the rounds' distributions, in the buckets of the first round. */
function together(rounds: readonly (Distribution | undefined)[]): Distribution | undefined {
  const filled = rounds.filter(round => round?.counts.some(count => count > 0)) as Distribution[]
  const first = filled[0]
  if (!first) return undefined
  const counts: number[] = []
  for (const { low, step, counts: more } of filled) {
    more.forEach((count, i) => {
      const middle = low * step ** (i + 0.5)
      const bucket = Math.max(0, Math.floor(Math.log(middle / first.low) / Math.log(first.step)))
      counts[bucket] = (counts[bucket] ?? 0) + count
    })
  }
  return { low: first.low, step: first.step, counts: Array.from(counts, count => count ?? 0) }
}

function eachTenth(rounds: readonly (readonly number[] | undefined)[]): number[] | undefined {
  const filled = rounds.filter(round => round !== undefined && round.length > 0) as (readonly number[])[]
  const length = Math.min(...filled.map(round => round.length))
  if (filled.length === 0) return undefined
  const medians = Array.from({ length }, (_, i) => spreadOf(filled.map(round => round[i]))?.median)
  return medians.every(isNumber) ? medians : undefined
}

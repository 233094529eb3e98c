/**
 * The outcome of one rival in one scenario, over its rounds. Not every round has figures: a trial may fail, and after a
 * round that failed or left calls that never returned there are no further rounds (`givenUp` in trial.ts). These are
 * recorded as skipped. But the rival was measured, or has failed, so no report may call it skipped.
 */
import type { Trial } from '../contract.ts'

export interface Rounds {
  readonly measured: readonly Trial[]
  /** Shown with figures that cover fewer rounds than the run has: '1 of 3 rounds'. */
  readonly mark: string | undefined
  /** Why there are fewer figures than rounds. */
  readonly shortcomings: readonly string[]
}

/** `trials` are the rival's in this scenario. `rounds` is the number of rounds of the run. */
export function roundsOf(trials: readonly Trial[], rounds: number): Rounds {
  const measured = trials.filter(({ outcome }) => outcome === 'measured')
  const few = measured.length > 0 && measured.length < rounds
  return {
    measured,
    mark: few ? `${measured.length} of ${rounds} rounds` : undefined,
    shortcomings: shortcomings(trials),
  }
}

/** Each reason once, with its rounds if it does not apply to all. */
function shortcomings(trials: readonly Trial[]): string[] {
  const failed = trials.filter(({ outcome }) => outcome === 'failed')
  const skipped = trials.filter(({ outcome }) => outcome === 'skipped')
  if (skipped.length === trials.length) return [...new Set(skipped.map(text))]
  if (skipped.length > 0 && failed.length === 0) return [`not tried again: ${skipped[0]!.reason}`]
  return [...new Set(failed.map(text))].map(why => {
    if (skipped.length > 0) return `${why} (round ${failed[0]!.round}, not tried again)`
    const { length } = failed.filter(trial => text(trial) === why)
    return length === trials.length ? why : `${why} (${length} of ${trials.length} rounds)`
  })
}

function text({ outcome, reason = 'no reason was given' }: Trial): string {
  return `${outcome}: ${reason}`
}

/**
 * The rounds of one rival in one scenario. Some rounds may have no figures. If a trial fails, or a call never returns,
 * the rival is not tried again (`givenUp` in trial.ts), and its later rounds are recorded as skipped. Reports must
 * still show such a rival as measured or failed, not as skipped.
 */
import type { Trial } from '../contract.ts'

export interface Rounds {
  readonly measured: readonly Trial[]
  /** A text such as '1 of 3 rounds'. Undefined if all rounds have figures, or if none has. */
  readonly mark: string | undefined
  /** Why there are fewer figures than rounds. */
  readonly shortcomings: readonly string[]
}

/** Combines all trials of one rival in one scenario. `rounds` is the number of rounds of the run. */
export function roundsOf(trials: readonly Trial[], rounds: number): Rounds {
  const measured = trials.filter(({ outcome }) => outcome === 'measured')
  const few = measured.length > 0 && measured.length < rounds
  return {
    measured,
    mark: few ? `${measured.length} of ${rounds} rounds` : undefined,
    shortcomings: shortcomings(trials),
  }
}

/** Returns each reason once. If a reason does not apply to all rounds, its text says to which or to how many. */
function shortcomings(trials: readonly Trial[]): string[] {
  const failed = trials.filter(({ outcome }) => outcome === 'failed')
  const skipped = trials.filter(({ outcome }) => outcome === 'skipped')
  if (skipped.length === trials.length) return [...new Set(skipped.map(text))]
  if (skipped.length > 0 && failed.length === 0) return [`the lock was left out of later rounds: ${skipped[0]!.reason}`]
  return [...new Set(failed.map(text))].map(why => {
    if (skipped.length > 0) return `${why} (in round ${failed[0]!.round}; the lock was left out of later rounds)`
    const { length } = failed.filter(trial => text(trial) === why)
    return length === trials.length ? why : `${why} (in ${length} of ${trials.length} rounds)`
  })
}

function text({ outcome, reason = 'no reason was given' }: Trial): string {
  return `${outcome}: ${reason}`
}

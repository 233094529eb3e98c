/**
 * I6: every promise settles, in time, and none is refused where nothing is the matter. I8: a hold that ended without its
 * release was signalled. I5: none is lost before its time, unless it may have been taken away from outside.
 *
 * A call's patience is its time-out, or how long the client rides out an unreachable server; a process whose event loop
 * stood still can only answer after that. The slack is for the machine: six processes and their server on two processors.
 */
import type { Attempt, History, Violation } from './history.ts'

const SLACK = 1_500
/** Between two readings of a process's clock, ms. */
const READING = 1

export function checkSettlement(history: History): Violation[] {
  return history.attempts.flatMap(attempt => unsettled(history, attempt) ?? [])
}

function unsettled(history: History, { request, settled, end }: Attempt): Violation | undefined {
  const { worker, key, attempt, patience, t } = request
  const died = history.deaths.get(worker)
  if (settled === Number.POSITIVE_INFINITY) {
    if (died !== undefined) return undefined
    return { invariant: 'I6', key, text: `${attempt} never settled`, events: [request] }
  }
  if (end?.how === 'failed' && !history.disturbances.touch(worker, key, t, settled)) {
    return { invariant: 'I6', key, text: `${attempt} failed without a fault: ${end.error}`, events: [request, end] }
  }
  if (patience === undefined) return undefined
  const late = settled - t - patience - SLACK
  if (late <= 0 || late <= history.disturbances.stalled(worker, t, settled)) return undefined
  const text = `${attempt} settled after ${Math.round(settled - t)} ms, with a patience of ${patience} ms`
  return { invariant: 'I6', key, text, events: [request] }
}

/**
 * A hold whose release was under way when its lease ran out has ended by the one or the other, and nobody has lost it.
 * Any other that was not ended by its release was lost, and its signal must have said so.
 */
export function checkNotice(history: History): Violation[] {
  const violations: Violation[] = []
  // Forged ones too: whoever believed in one has to be told.
  for (const { grant, deadline, release, released, lost } of history.holdById.values()) {
    if (lost || history.deaths.has(grant.worker)) continue
    const events = released ? [grant, released] : [grant]
    const report = (text: string) =>
      violations.push({ invariant: 'I8', key: grant.key, text: `${grant.id} ${text}`, events })
    if (!release) report('was neither released nor lost')
    else if (!released) report('was released, which never settled')
    else if (released.result === false && !(release.held && released.t >= deadline)) {
      report('had ended before its release, and nothing said so')
    }
  }
  return violations
}

/**
 * A deadline never moves to an earlier time, and is recorded no later than it is. So a process that says before it that
 * the hold is lost was told so by Redis, or counts wrongly.
 */
export function checkOwnership(history: History): Violation[] {
  const violations: Violation[] = []
  for (const { grant, request, deadline, lost, forged } of history.holdById.values()) {
    if (!lost || lost.t >= deadline - READING || forged || history.takings.cut(grant, request?.t) <= lost.t) continue
    const text = `${grant.id} was lost ${Math.round(deadline - lost.t)} ms before its time, and nothing had taken it away`
    violations.push({ invariant: 'I5', key: grant.key, text, events: [grant, lost] })
  }
  return violations
}

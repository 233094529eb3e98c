/**
 * Checks three invariants:
 * - I5: no hold is lost before its deadline, unless a fault or a forced release may have taken it away.
 * - I6: every promise settles in time, and no call fails without a fault. A call that would wait for a hold of its own
 *   owner is refused as a deadlock.
 * - I8: if a hold ended without its release, its holder was notified.
 *
 * The time limit of a call is its timeout, or the time for which the client tolerates an unreachable server. While the
 * event loop of a process stands still, no call of this process can settle. An extra tolerance allows for a slow
 * machine: six processes and their server run on two processors.
 */
import { countedUntil } from './exclusion.ts'
import type { Attempt, History, Hold, Violation } from './history.ts'
import { groupBy } from './lists.ts'

const SLACK = 1_500
/** A call's first attempt has this time for its answer, in ms, even if the call's timeout is shorter. */
const ATTEMPT = 1_000
/**
 * The tolerance for comparing a deadline with the time of a loss, in ms. The process reads its clock once for the
 * deadline and once for the loss, at slightly different moments.
 */
const READING = 1

export function checkSettlement(history: History): Violation[] {
  const calls = groupBy(history.attempts, ({ request }) => request.part)
  return history.attempts.flatMap(attempt => {
    // If a call requests several locks, a fault that hits one of them ends the whole call.
    const parts = attempt.request.part === undefined ? [attempt] : (calls.get(attempt.request.part) as Attempt[])
    return unsettled(history, attempt, parts) ?? []
  })
}

function unsettled(
  history: History,
  { request, settled, end }: Attempt,
  parts: readonly Attempt[],
): Violation | undefined {
  const { worker, key, attempt, patience, t } = request
  const died = history.deaths.get(worker)
  if (settled === Number.POSITIVE_INFINITY) {
    if (died !== undefined) return undefined
    return { invariant: 'I6', key, text: `${attempt} never settled`, events: [request] }
  }
  const disturbed = () => parts.some(part => history.disturbances.touch(worker, part.request.key, t, settled))
  if (end?.how === 'failed' && !disturbed()) {
    return { invariant: 'I6', key, text: `${attempt} failed without a fault: ${end.error}`, events: [request, end] }
  }
  if (patience === undefined) return undefined
  const late = settled - t - Math.max(patience, ATTEMPT) - SLACK
  if (late <= 0 || late <= history.disturbances.stalled(worker, t, settled)) return undefined
  const text = `${attempt} settled after ${Math.round(settled - t)} ms, with a patience of ${patience} ms`
  return { invariant: 'I6', key, text, events: [request] }
}

/**
 * Checks which calls were refused as a deadlock. If an owner reads and does not write, its own call to write would wait
 * for its own read to end. Such a call must be refused as a deadlock. No other call may be refused as a deadlock.
 */
export function checkDeadlocks(history: History): Violation[] {
  const writing = history.attempts.filter(({ request }) => request.wants === 'write')
  const byOwner = groupBy(
    writing.length > 0 ? history.holdById.values() : [],
    ({ grant }) => `${grant.owner} ${grant.key}`,
  )
  return writing.flatMap(attempt => {
    const { request, end, hold } = attempt
    const own = (byOwner.get(`${request.owner} ${request.key}`) ?? []).filter(each => each !== hold)
    const report = (text: string, ...events: (Hold | undefined)[]) => [
      {
        invariant: 'I6',
        key: request.key,
        text: `${request.attempt} ${text}`,
        events: [request, ...events.flatMap(event => event?.grant ?? [])],
      },
    ]
    if (end?.how === 'deadlock') {
      const possible = own.some(
        ({ wants, request: read, ...it }) =>
          wants === 'read' && mayLast(it, request.t) && read && read.t <= attempt.settled,
      )
      return possible ? [] : report('was refused as a deadlock, while its owner did not read')
    }
    const read = own.find(
      each => each.wants === 'read' && each.grant.t <= request.t && countedUntil(history, each) > attempt.settled,
    )
    if (!read || own.some(each => each.wants === 'write' && mayLast(each, request.t))) return []
    if (hold) return report('was let in to write while its owner read', read, hold)
    if (end && end.how !== 'aborted' && !history.disturbances.touch(request.worker, request.key, request.t, end.t)) {
      return report(`ended by ${end.how}, and not as a deadlock, while its owner read`, read)
    }
    return []
  })
}

/**
 * Whether Redis may still have known the hold at this time. If its release did not succeed, the history does not show
 * when Redis ended the hold.
 */
function mayLast({ released }: Pick<Hold, 'released'>, t: number): boolean {
  return released?.result !== true || released.t >= t
}

/**
 * Checks that each holder released its hold, or was notified of its loss. If a release resolves to false, the hold had
 * been lost, so its holder must have been notified. There is one exception: if the lease ran out while the release was
 * under way, no notification is needed.
 */
export function checkNotice(history: History): Violation[] {
  const violations: Violation[] = []
  // This includes forged holds: a holder that believed a forged grant has to be notified.
  for (const { grant, deadline, release, released, lost } of history.holdById.values()) {
    if (lost || history.deaths.has(grant.worker)) continue
    const events = released ? [grant, released] : [grant]
    const report = (text: string) =>
      violations.push({ invariant: 'I8', key: grant.key, text: `${grant.id} ${text}`, events })
    if (!release) report('was neither released nor lost')
    else if (!released) report('was released, which never settled')
    else if (released.result === false && !((release.held || release.doubt) && released.t >= deadline)) {
      report('had ended before its release, and nothing said so')
    }
  }
  return violations
}

/**
 * Checks that no hold was lost before its deadline, unless a fault or a forced release may have taken it away. A
 * process only moves a deadline to a later time, and the deadline in the history is never later than the deadline that
 * the process knew. So if a process reports a loss before the deadline in the history, either Redis has reported the
 * loss to the process, or the process is wrong.
 */
export function checkOwnership(history: History): Violation[] {
  const violations: Violation[] = []
  for (const { grant, request, deadline, lost, forged } of history.holdById.values()) {
    if (!lost || lost.t >= deadline - READING || forged || history.takings.told(grant, request?.t) <= lost.t) continue
    const text = `${grant.id} was lost ${Math.round(deadline - lost.t)} ms before its time, and nothing had taken it away`
    violations.push({ invariant: 'I5', key: grant.key, text, events: [grant, lost] })
  }
  return violations
}

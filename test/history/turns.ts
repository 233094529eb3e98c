/**
 * Unfair processes take turns: while one process waits for a lock, no other process gets the lock again and again. A
 * turn is a grant by Redis to an unfair caller, with all local hand-offs after it.
 *
 * The check compares a process that waits and gets nothing with a process that gets the lock. Two processes that both
 * always want the lock would alternate. But a process leaves the lock to others only for a few ms, so a process that is
 * slow at that moment misses its turn. Therefore a violation needs many turns of the one process and a long wait of the
 * other, during which both are undisturbed. Only mutexes are checked, because other locks can have several holders at
 * the same time.
 */
import type { Attempt, History, Hold, Violation } from './history.ts'
import { groupBy, lowerBound } from './lists.ts'

/** A violation needs more than TURNS turns of one process, while another process waits for more than WAIT ms. */
export const TURNS = 20
export const WAIT = 1_000

export function checkTurns(history: History): Violation[] {
  const violations: Violation[] = []
  // In a quorum each server grants separately, and it is a matter of chance which caller gets a majority.
  if (history.terms.servers !== undefined) return violations
  const waiting = history.attempts.filter(
    ({ request, end }) =>
      request.mode === 'unfair' && request.wants === undefined && !request.part && end?.how !== 'failed',
  )
  for (const [key, attempts] of groupBy(waiting, ({ request }) => request.key)) {
    const holds = history.holds.get(key) ?? []
    for (const attempt of attempts) {
      const found = passedOver(history, attempt, holds)
      if (found) violations.push(found)
    }
  }
  return violations
}

/** Examines the last part of the wait, in which the attempt's process was granted nothing. */
function passedOver(history: History, { request, settled }: Attempt, holds: readonly Hold[]): Violation | undefined {
  const { worker, key } = request
  const to = Math.min(settled, history.deaths.get(worker) ?? Number.POSITIVE_INFINITY)
  if (to - request.t < WAIT) return undefined
  const turns = new Map<string, Hold[]>()
  for (let i = lowerBound(holds, to, ({ grant }) => grant.t) - 1; i >= 0; i--) {
    const hold = holds[i]!
    if (hold.grant.t < request.t || hold.grant.worker === worker) break
    if (!isTurn(hold)) continue
    const list = turns.get(hold.grant.worker) ?? []
    turns.set(hold.grant.worker, list)
    list.push(hold)
    const from = hold.grant.t
    if (list.length < TURNS || to - from < WAIT) continue
    const disturbed = [worker, hold.grant.worker].some(each => history.disturbances.touch(each, key, from, to))
    if (disturbed) return undefined
    return {
      invariant: 'turns',
      key,
      text: `${hold.grant.worker} had ${list.length} turns in ${Math.round(to - from)} ms while ${request.attempt} of ${worker} waited and had none`,
      events: [request, hold.grant, list[0]!.grant],
    }
  }
  return undefined
}

function isTurn({ grant, request }: Hold): boolean {
  return request?.mode === 'unfair' && grant.via !== 'handoff' && grant.via !== 'reentry'
}

/**
 * Checks that unfair processes take turns: while one process waits for a lock, no other process gets the lock again and
 * again. A turn is a grant by Redis to an unfair caller, with all local hand-offs after it.
 *
 * Two processes that always want the same lock should get it alternately. But after its turn, a process gives the
 * others only a few ms to take the lock. A process that is slow at that moment misses its turn. So the check reports a
 * violation only if one process had many turns during a long wait of another process, and no fault disturbed either of
 * them in this time. Only mutexes are checked, because other locks can have several holders at the same time.
 */
import type { Attempt, History, Hold, Violation } from './history.ts'
import { groupBy, lowerBound } from './lists.ts'

/** A violation needs more than TURNS turns of one process, while another process waits for more than WAIT ms. */
export const TURNS = 20
export const WAIT = 1_000

export function checkTurns(history: History): Violation[] {
  const violations: Violation[] = []
  // A quorum has no turns: each server grants separately, and chance decides which caller gets a majority.
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

/**
 * Returns a violation if another process had too many turns while this attempt waited. If the process of this attempt
 * was granted the lock in the meantime, only the turns after that count.
 */
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

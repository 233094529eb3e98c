/**
 * I3: while a live waiter is queued, Redis grants nothing to a caller that does not queue. For example, if the waiter
 * at the head of the queue needs many permits, a small request does not overtake it. A reader or writer that does not
 * queue overtakes no queued reader or writer. Mutexes are not checked, because a client hands a mutex on locally, and
 * its other callers may then overtake a queued waiter.
 *
 * If a caller that does not queue makes its request after a snapshot of the queue, all waiters in the snapshot must be
 * granted before that caller. A waiter is excused if it may have lost its place although the lock is correct; order.ts
 * lists the excuses. If several callers that do not queue came after the snapshot, the check compares the waiters only
 * with the one that was granted first, which has the smallest token. This is enough: an excuse counts only if it came
 * before the grant, so the earliest grant leaves the least time for an excuse.
 */
import type { History, Hold, Violation } from './history.ts'
import { Newcomers } from './newcomers.ts'
import { excuseOf, hasTurn, type Judged, waitedUntil } from './order.ts'
import { groupOf } from './wants.ts'

export function checkBarging(history: History): Judged {
  const violations: Violation[] = []
  const decided = new Set<string>()
  const reported = new Set<string>()
  const newcomers = new Map([...history.holds].map(([key, holds]) => [key, new Newcomers(holds.filter(takes))]))
  for (const sight of history.all('queue')) {
    const first = newcomers.get(sight.key)?.firstAfter(sight.t)
    if (!first) continue
    for (const entry of [...sight.entries, ...(sight.readers ?? [])]) {
      const [id, ticket, , owner] = entry
      const waiter = history.waiter(id, owner)
      // A full group is passed.
      const group = groupOf(waiter.hold?.wants ?? waiter.attempt?.request.wants)
      if (group !== '' && group !== groupOf(first.wants)) continue
      if (!hasTurn(waiter, sight) || excuseOf(history, sight, entry, first)) continue
      decided.add(id)
      if (!waitedUntil(waiter, first) || reported.has(id)) continue
      reported.add(id)
      violations.push({
        invariant: 'I3',
        key: sight.key,
        text: `${first.grant.id}, which did not queue, was granted ahead of ${id} with ticket ${ticket}`,
        events: [sight, first.grant, ...(waiter.hold ? [waiter.hold.grant] : [])],
      })
    }
  }
  return { violations, decided: decided.size }
}

/** Whether the call of this hold did not queue. Calls for mutexes and re-entries do not count. */
function takes({ wants, request, grant }: Hold): boolean {
  const queues = request?.mode === 'fair' || request?.mode === 'fairAfter'
  return wants !== undefined && !queues && grant.via !== 'reentry'
}

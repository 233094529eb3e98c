/**
 * I3: grants follow the tickets of live fair waiters. The server assigns the tickets, and the check reads them from
 * snapshots of the queue.
 *
 * The check goes through each snapshot from the end of the queue to its head. For each waiter, it knows which of the
 * waiters behind this waiter was granted first. If that grant came before the waiter's own grant, or while the waiter
 * still waited, the waiter has been overtaken. That is a violation unless the waiter may have lost its place between
 * the snapshot and the overtaking:
 * - its process was killed, cut off or stalled, or the server refused everything or lost its data (disturbances.ts);
 * - the lock was taken away;
 * - the waiter requested so short a lease that its own hold may have begun and ended in that time.
 *
 * An excuse counts only if it came before the overtaking. So an excuse for the earliest overtaking excuses all later
 * ones, and one comparison per waiter is enough. The check is linear in the size of the snapshots.
 *
 * The check also requires that a waiter keeps its ticket, whatever happens to the queue. A waiter may get a second
 * ticket only if the reply with the first ticket was lost.
 */
import type { Entry, EventOf } from './events.ts'
import type { History, Hold, Violation, Waiter } from './history.ts'
import { groupOf } from './wants.ts'

/**
 * The violations of a rule. `decided` is the number of waiters that the rule judged and that had no possible excuse.
 */
export interface Judged {
  readonly violations: Violation[]
  readonly decided: number
}

export interface OrderReport extends Judged {
  /**
   * The number of compared waiters. A waiter is compared if another waiter behind it in the snapshot was granted the
   * lock.
   */
  readonly compared: number
  /** The number of waiters that were overtaken with an excuse. */
  readonly excused: number
}

interface Granted {
  readonly hold: Hold
  readonly entry: Entry
}

export function checkOrder(history: History): OrderReport {
  const violations: Violation[] = []
  const compared = new Set<string>()
  const decided = new Set<string>()
  const excused = new Set<string>()
  const reported = new Set<string>()

  for (const sight of history.all('queue')) {
    // In a semaphore with groups, only the waiters of one group are in the order of their tickets.
    const firsts = new Map<string, Granted>()
    for (const entry of [...sight.entries].reverse()) {
      const [id, , , owner] = entry
      const waiter = history.waiter(id, owner)
      if (!hasTurn(waiter, sight)) continue
      const { hold } = waiter
      const group = groupOf(hold?.wants ?? waiter.attempt?.request.wants)
      const first = firsts.get(group)
      if (first) {
        compared.add(id)
        const overtaken = waitedUntil(waiter, first.hold)
        const excuse = excuseOf(history, sight, entry, first.hold)
        if (!excuse) decided.add(id)
        else if (overtaken) excused.add(id)
        if (overtaken && !excuse && !reported.has(id)) {
          reported.add(id)
          violations.push(overtaking(sight, entry, hold, first))
        }
      }
      if (hold && (!first || hold.grant.token < first.hold.grant.token)) firsts.set(group, { hold, entry })
    }
  }
  return {
    violations: [...violations, ...changedTickets(history)],
    compared: compared.size,
    decided: decided.size,
    excused: excused.size,
  }
}

/**
 * Whether the waiter was still to be granted the lock at the time of the snapshot. If it was granted the lock earlier,
 * it is queued only because a repeated request arrived late, and its client will give back the second grant. If its
 * grant was forged, the history does not show its turn, so the result is false.
 */
export function hasTurn({ hold }: Waiter, { t }: EventOf<'queue'>): boolean {
  return !hold || (hold.grant.t >= t && hold.grant.via !== 'reentry' && !hold.forged)
}

/** Whether the waiter may have lost its place, or used its turn, between the snapshot and the given grant. */
export function excuseOf(
  history: History,
  { key, from }: EventOf<'queue'>,
  [id, , worker, owner]: Entry,
  { grant }: Hold,
): boolean {
  const { hold, attempt } = history.waiter(id, owner)
  const { lease = Number.POSITIVE_INFINITY } = hold?.request ?? attempt?.request ?? {}
  // The waiter may have been granted the lock and have lost it again before its process learned of the grant. Then the
  // waiter has had its turn, and waits again. This needs a short lease, or an event that takes holds away, such as a
  // forced release.
  const hadItsTurn = lease < grant.t - from || history.takings.of(key, from, grant.t)
  return hadItsTurn || history.disturbances.touch(worker, key, from, grant.t)
}

/** Whether a waiter that was seen in a queue certainly kept waiting until after the given grant. */
export function waitedUntil(waiter: Waiter, { grant }: Hold): boolean {
  return waiter.hold ? waiter.hold.grant.token > grant.token : surelyUntil(waiter) > grant.t
}

/** A timer may fire this many ms early. */
const EARLY = 1

/**
 * Returns the time until which an attempt without a grant certainly waited. The process gives up as soon as the timeout
 * of the attempt has passed, but a busy machine may record the end of the attempt late. A call for several locks may
 * have been granted this lock, and may have released it again before it ended. So it is not certain that such a call
 * waited for this lock.
 */
function surelyUntil({ attempt }: Waiter): number {
  if (!attempt?.end || attempt.request.part) return Number.NEGATIVE_INFINITY
  const { t, patience = Number.POSITIVE_INFINITY, abort = Number.POSITIVE_INFINITY } = attempt.request
  return Math.min(attempt.end.t, t + Math.min(patience, abort) - EARLY)
}

function overtaking(
  sight: EventOf<'queue'>,
  [id, ticket]: Granted['entry'],
  hold: Hold | undefined,
  first: Granted,
): Violation {
  const [otherId, otherTicket] = first.entry
  return {
    invariant: 'I3',
    key: sight.key,
    text: `${otherId} with ticket ${otherTicket} was granted ahead of ${id} with ticket ${ticket}`,
    events: [sight, first.hold.grant, ...(hold ? [hold.grant] : [])],
  }
}

/**
 * The longest time between a waiter's request and the first snapshot that shows the waiter, in ms. The history does not
 * always show the time of the request. So a disturbance excuses a changed ticket even if it came up to this long before
 * the snapshot with the old ticket.
 */
const LONGEST_JOIN = 5_000

function changedTickets(history: History): Violation[] {
  const violations: Violation[] = []
  const seen = new Map<string, { ticket: string; sight: EventOf<'queue'> }>()
  for (const sight of history.all('queue')) {
    for (const [id, ticket, worker] of [...sight.entries, ...(sight.readers ?? [])]) {
      const before = seen.get(id)
      seen.set(id, { ticket, sight })
      if (!before || before.ticket === ticket) continue
      if (history.disturbances.touch(worker, sight.key, before.sight.from - LONGEST_JOIN, sight.t)) continue
      violations.push({
        invariant: 'I3',
        key: sight.key,
        text: `the ticket of ${id} changed from ${before.ticket} to ${ticket}`,
        events: [before.sight, sight],
      })
    }
  }
  return violations
}

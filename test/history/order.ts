/**
 * I3: grants follow the tickets of live fair waiters. A ticket is the server's: the queue itself, as it was seen.
 *
 * In each sight of a queue, from its end to its front, the check keeps the waiter that was granted first among those
 * behind. A waiter whose own grant is later than that one's (or that was still waiting then) has been overtaken, and that is
 * a violation unless something may have cost it its place between the sight and the overtaking: its process was killed, cut
 * off or stalled, or the server refused everybody or lost its data (disturbances.ts), or the lock was taken away, or the lease that it asked
 * for is so short that it may have been over before its process heard of the grant. The earliest overtaking is the one
 * with the least time for such an excuse, so one comparison a waiter is enough: linear in the size of the sights.
 *
 * Also: a waiter keeps its ticket, whatever happens to the queue. It gets another one only if it has never heard of its
 * first, because the reply was lost.
 */
import type { Entry, EventOf } from './events.ts'
import type { History, Hold, Violation, Waiter } from './history.ts'

/** A rule's findings, and how many waiters it judged that nothing could have excused. */
export interface Judged {
  readonly violations: Violation[]
  readonly decided: number
}

export interface OrderReport extends Judged {
  /** Waiters that were compared with one behind them that was granted. */
  readonly compared: number
  /** Those that were overtaken with an excuse. */
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
    let first: Granted | undefined
    for (const entry of [...sight.entries].reverse()) {
      const [id, , , owner] = entry
      const waiter = history.waiter(id, owner)
      if (!hasTurn(waiter, sight)) continue
      const { hold } = waiter
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
      if (hold && (!first || hold.grant.token < first.hold.grant.token)) first = { hold, entry }
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
 * Whether the waiter's own turn was still to come. What was granted before it was seen has come back as a ghost, and is given back
 * when its turn comes. A forged grant says nothing of the turn.
 */
export function hasTurn({ hold }: Waiter, { t }: EventOf<'queue'>): boolean {
  return !hold || (hold.grant.t >= t && hold.grant.via !== 'reentry' && !hold.forged)
}

/** Whether something may have cost a waiter its place, or its turn, between the sight and that grant. */
export function excuseOf(
  history: History,
  { key, from }: EventOf<'queue'>,
  [id, , worker, owner]: Entry,
  { grant }: Hold,
): boolean {
  const { hold, attempt } = history.waiter(id, owner)
  const { lease = Number.POSITIVE_INFINITY } = hold?.request ?? attempt?.request ?? {}
  // It may have had its turn, and lost it again before it heard of that: then it waits anew, and the next one has had its own.
  const hadItsTurn = lease < grant.t - from || history.takings.of(key, from, grant.t)
  return hadItsTurn || history.disturbances.touch(worker, key, from, grant.t)
}

/** Whether a waiter that was seen in a queue surely waited there for longer than until that grant. */
export function waitedUntil(waiter: Waiter, { grant }: Hold): boolean {
  return waiter.hold ? waiter.hold.grant.token > grant.token : surelyUntil(waiter) > grant.t
}

/** A timer may fire so many ms early. */
const EARLY = 1

/**
 * Until when an attempt that was not granted surely waited. Its end is recorded when it is known, which on a busy machine is
 * later than its process gave up: that it may have done as soon as its patience was over. A part of several locks may have been granted
 * and given back.
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

/** How long before it is first seen a waiter may have asked, where the history does not say when it did, in ms. */
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

/**
 * I3 between the groups of a semaphore: groups take turns. While a waiter could be next, another group is granted at most
 * the largest job of the waiter's group, and one job more. All calls of a history have the same weight.
 *
 * The check looks at the first waiter of each group in each snapshot of the queue, if this waiter has no limit, so that
 * its group is never full. It counts the grants of other groups that certainly came after the snapshot, because their
 * callers were queued in it, or made their requests later. The waiter is excused as in order.ts. It is also excused if one
 * of its mates may have come before it: by a head start, or because this mate had lost its place for a while.
 */
import type { Entry, EventOf } from './events.ts'
import type { Attempt, History, Hold, Violation } from './history.ts'
import { groupBy, lowerBound } from './lists.ts'
import { excuseOf, hasTurn, type Judged, waitedUntil } from './order.ts'
import { groupOf, limitOf, weightOf } from './wants.ts'

/**
 * Only grants up to this many ms after the snapshot count. In a longer time, an idle group may be forgotten. Then it has
 * had nothing.
 */
const WINDOW = 1_000

export function checkShares(history: History): Judged {
  const violations: Violation[] = []
  const decided = new Set<string>()
  const reported = new Set<string>()
  const mates = groupBy(history.attempts, ({ request: { key, wants } }) => `${groupOf(wants)} of ${key}`)
  for (const sight of history.all('queue')) {
    const queued = new Set(sight.entries.map(([id]) => id))
    for (const [group, entry] of firstsOf(history, sight)) {
      const [id, , , owner] = entry
      const waiter = history.waiter(id, owner)
      const wants = waiter.hold?.wants ?? waiter.attempt?.request.wants
      if (!hasTurn(waiter, sight) || limitOf(wants) !== Number.POSITIVE_INFINITY) continue
      const own = mates.get(`${group} of ${sight.key}`) ?? []
      const share = Math.max(...own.map(({ request }) => weightOf(request.wants).permits))
      const sums = new Map<string, number>()
      for (const hold of grantsAfter(history, sight, queued)) {
        const other = groupOf(hold.wants)
        if (other === group || !waitedUntil(waiter, hold)) break
        const before = sums.get(other) ?? 0
        sums.set(other, before + weightOf(hold.wants).permits)
        if (excuseOf(history, sight, entry, hold) || own.some(mate => mayComeFirst(history, sight, mate, hold))) break
        decided.add(id)
        if (before <= share || reported.has(id)) continue
        reported.add(id)
        violations.push({
          invariant: 'I3',
          key: sight.key,
          text: `${hold.grant.id} was granted after group "${other}" had ${before} permits, while ${id} of group "${group}" was first`,
          events: [sight, hold.grant, ...(waiter.hold ? [waiter.hold.grant] : [])],
        })
      }
    }
  }
  return { violations, decided: decided.size }
}

/** Returns the first waiter of each group. A waiter whose group is unknown may be ahead of all waiters behind it. */
function firstsOf(history: History, { entries }: EventOf<'queue'>): Map<string, Entry> {
  const firsts = new Map<string, Entry>()
  for (const entry of entries) {
    const { hold, attempt } = history.waiter(entry[0], entry[3])
    const wants = hold?.wants ?? attempt?.request.wants
    if (typeof wants !== 'object') break
    if (!firsts.has(groupOf(wants))) firsts.set(groupOf(wants), entry)
  }
  return firsts
}

/** Returns the holds that were certainly granted after the snapshot, by token. */
function grantsAfter(history: History, { key, t }: EventOf<'queue'>, queued: ReadonlySet<string>): Hold[] {
  const holds = history.holds.get(key) ?? []
  const [from, to] = [t, t + WINDOW].map(each => lowerBound(holds, each, ({ grant }) => grant.t))
  return holds
    .slice(from, to)
    .filter(({ grant, request }) => queued.has(grant.id) || (request && request.t > t))
    .sort((a, b) => a.grant.token - b.grant.token)
}

/** Whether this mate may have been ahead of the first waiter of the snapshot when `hold` was granted. */
function mayComeFirst(
  { disturbances }: History,
  { key, from }: EventOf<'queue'>,
  { request, settled }: Attempt,
  { grant }: Hold,
): boolean {
  if (request.t > grant.t || settled < from) return false
  return request.headStart !== undefined || disturbances.touch(request.worker, key, from, grant.t)
}

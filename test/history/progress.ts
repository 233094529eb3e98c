/**
 * I4: while a lock is free and a caller waits for it, a grant comes within a bounded time. There are two checks:
 *
 *   in each calm   no caller waits longer than `stillness` while no process holds the key
 *   at the end     after all faults were healed, no caller waits longer than the run's own bound
 *
 * A calm is a time between storms of faults. When it begins, three things may still delay a grant, in the worst case
 * one after another:
 * - the rest of a lease, if the holder's process has died or never learned of its grant;
 * - the 1.25 s until a client tries to connect again;
 * - the time until the next heartbeat, if a message was lost.
 *
 * One more second allows for a machine with too few processors. If a call requests several locks, the history does not
 * show when it was granted each of them. So each of these locks counts as held while the call waits.
 */
import type { EventOf } from './events.ts'
import type { Attempt, History, Violation } from './history.ts'
import { groupBy, lowerBound } from './lists.ts'

const RECONNECT = 1_250
const MACHINE = 1_000

function stillness({ longestLease, waiterTtl }: EventOf<'run'>): number {
  return longestLease + waiterTtl / 3 + RECONNECT + MACHINE
}

interface Gap {
  readonly from: number
  readonly to: number
}

export function checkProgress(history: History): Violation[] {
  const calms = calmsOf(history)
  const bound = stillness(history.terms)
  const violations: Violation[] = []
  for (const [key, attempts] of groupBy(history.attempts, ({ request }) => request.key)) {
    const held = [
      ...(history.holds.get(key) ?? []).map(({ grant, end }) => ({ from: grant.t, to: end })),
      ...kept(history, attempts),
    ]
    const gaps = within(gapsOf(held), calms).filter(({ from, to }) => to - from > bound)
    if (gaps.length === 0) continue
    const lasts = lastToSettleSoFar(attempts)
    for (const gap of gaps) {
      const inside = lowerBound(attempts, gap.from, ({ request }) => request.t)
      const outside = lowerBound(attempts, gap.to - bound, ({ request }) => request.t)
      const candidates = [...lasts.slice(Math.max(0, inside - 1), inside), ...attempts.slice(inside, outside)]
      const waiter = candidates.find(attempt => waitedIn(history, attempt, gap) > bound)
      if (waiter) violations.push(still(key, waiter, gap))
    }
  }
  return [...violations, ...stillWaiting(history)]
}

/**
 * Returns how long the attempt waited during a gap, in ms. In a gap, no process holds the lock. A killed process no
 * longer waits, and a stalled process cannot learn of its grant. A call for several locks may already hold this lock
 * while it waits for another lock, so its wait does not count.
 */
function waitedIn({ deaths, disturbances }: History, { request, settled }: Attempt, gap: Gap): number {
  if (request.part) return 0
  const from = Math.max(request.t, gap.from)
  const to = Math.min(settled, deaths.get(request.worker) ?? Number.POSITIVE_INFINITY, gap.to)
  return to > from ? to - from - disturbances.stalled(request.worker, from, to) : 0
}

/**
 * Returns a list of the same length. At each index, it has the attempt that settled last among the attempts up to this
 * index.
 */
function lastToSettleSoFar(attempts: readonly Attempt[]): Attempt[] {
  const lasts: Attempt[] = []
  for (const attempt of attempts) {
    const last = lasts.at(-1)
    lasts.push(last && last.settled >= attempt.settled ? last : attempt)
  }
  return lasts
}

function calmsOf(history: History): Gap[] {
  const calms: Gap[] = []
  let from: number | undefined
  for (const { kind, t } of history.events) {
    if (kind === 'calm') from = t
    else if (kind === 'storm' && from !== undefined) {
      calms.push({ from, to: t })
      from = undefined
    }
  }
  const last = history.events.at(-1)
  if (from !== undefined && last) calms.push({ from, to: last.t })
  return calms
}

/**
 * Returns the times in which a call for several locks may already hold this lock while it waits for the other locks.
 */
function kept({ deaths }: History, attempts: readonly Attempt[]): Gap[] {
  return attempts
    .filter(({ request }) => request.part)
    .map(({ request, settled }) => ({
      from: request.t,
      to: Math.min(settled, deaths.get(request.worker) ?? Number.POSITIVE_INFINITY),
    }))
}

/** Returns the times in which no process relied on a hold. */
function gapsOf(held: readonly Gap[]): Gap[] {
  const gaps: Gap[] = []
  let from = Number.NEGATIVE_INFINITY
  for (const hold of [...held].sort((a, b) => a.from - b.from)) {
    if (hold.from > from) gaps.push({ from, to: hold.from })
    from = Math.max(from, hold.to)
  }
  return [...gaps, { from, to: Number.POSITIVE_INFINITY }]
}

/** Returns the times that are both in a gap and in a calm. Each list is sorted, and its entries do not overlap. */
function within(gaps: readonly Gap[], calms: readonly Gap[]): Gap[] {
  const parts: Gap[] = []
  let first = 0
  for (const calm of calms) {
    while (first < gaps.length && gaps[first]!.to <= calm.from) first++
    for (let i = first; i < gaps.length && gaps[i]!.from < calm.to; i++) {
      parts.push({ from: Math.max(gaps[i]!.from, calm.from), to: Math.min(gaps[i]!.to, calm.to) })
    }
  }
  return parts
}

function still(key: string, { request }: Attempt, { from, to }: Gap): Violation {
  return {
    invariant: 'I4',
    key,
    text: `nobody held the lock for ${Math.round(to - from)} ms from ${from.toFixed(3)} while ${request.attempt} waited`,
    events: [request],
  }
}

function stillWaiting(history: History): Violation[] {
  const healed = history.all('healed').at(-1)
  if (!healed) return []
  const { t, bound } = healed
  return history.attempts
    .filter(({ request, settled }) => !history.deaths.has(request.worker) && settled > Math.max(t, request.t) + bound)
    .map(({ request, settled }) => ({
      invariant: 'I4',
      key: request.key,
      text: `${request.attempt} ${settled === Number.POSITIVE_INFINITY ? 'was never answered' : `waited for ${Math.round(settled - t)} ms`} after everything was healed`,
      events: [request, healed],
    }))
}

/**
 * I2: the tokens of a key strictly increase from grant to grant. Holds that one owner got by re-entry share a token.
 * There are four violations:
 * - Repeated: two owners have the same token, or one owner has it twice. An owner may have a token twice only if it
 *   re-entered, or if it was admitted to read while it had another hold.
 * - Went back: a grant has a smaller token than another grant that had arrived before this grant was requested. An
 *   owner that already reads may get another read with its old token.
 * - Out of step: two holds exclude each other, and the grant with the smaller token reached its process after the grant
 *   with the larger token had reached its own process.
 * - Ahead: a token is so far ahead of the servers' clocks that local hand-offs cannot be the reason. If the data of the
 *   lock is lost, Redis may then issue the same tokens again.
 */
import type { EventOf } from './events.ts'
import { countedUntil } from './exclusion.ts'
import type { History, Hold, Violation } from './history.ts'
import { groupBy } from './lists.ts'
import { exclude, reenters, type Wants } from './wants.ts'

/**
 * How far a token may be ahead of all clocks, in ms. A token is a time in µs, and a block of tokens for local hand-offs
 * is 1,000 tokens long, which is 1 ms. The rest allows for inexact readings of the clocks.
 */
const LEAD = 50
/**
 * How far a token may be ahead in addition if a lock has several servers, in ms. A client asks for tokens that are ahead
 * by the time that a request takes to its most distant server, 400 ms at most, and 10 % more
 * (src/compose/quorum/eligibility.ts). So all its requests reach the servers before the time of the token.
 */
const ON_ITS_WAY = 440

export function checkFencing(history: History): Violation[] {
  const violations: Violation[] = []
  const most = LEAD + (history.all('run').some(({ servers }) => servers !== undefined) ? ON_ITS_WAY : 0)
  const clocks = [...groupBy(history.all('clock'), ({ server }) => server).values()]
  for (const [key, holds] of history.holds) {
    const report = (text: string, first: Hold, second: Hold) =>
      violations.push({ invariant: 'I2', key, text, events: [first.grant, second.grant] })
    repeated(holds, report)
    wentBack(holds, report)
    outOfStep(history, holds, report)
    for (const { grant } of holds) {
      const said = clocks.map(list => latest(list, grant.t))
      const lead = clocks.length > 0 ? Math.round(grant.token / 1000 - Math.max(...said)) : 0
      const text = `token ${grant.token} is ${lead} ms ahead of the time of day`
      if (lead > most) violations.push({ invariant: 'I2', key, text, events: [grant] })
    }
  }
  return violations
}

/** Returns the latest time of day, in ms, that a server's clock showed up to the monotonic time `until`. */
function latest(clocks: readonly EventOf<'clock'>[], until: number): number {
  let last = Number.NEGATIVE_INFINITY
  for (const [i, { t, wall }] of clocks.entries()) {
    if (t > until) break
    last = Math.max(last, wall + Math.min(until, clocks[i + 1]?.t ?? until) - t)
  }
  return last
}

type Report = (text: string, first: Hold, second: Hold) => void

function repeated(holds: readonly Hold[], report: Report): void {
  for (const [token, group] of groupBy(holds, ({ grant }) => grant.token)) {
    const first = group.find(({ grant }) => grant.via !== 'reentry') ?? group[0]!
    for (const hold of group) {
      if (hold === first) continue
      const { owner, via } = hold.grant
      if (owner !== first.grant.owner) report(`token ${token} was given to two owners`, first, hold)
      else if (via === 'reentry' ? !reenters(hold.wants) : !readsBeside(hold, group))
        report(`token ${token} was given twice to ${owner}`, first, hold)
    }
  }
}

/**
 * Whether this hold is a read, and another hold of `group` was live at some time between the request and the end of
 * this hold. All holds of `group` have the same token.
 */
function readsBeside(hold: Hold, group: readonly Hold[]): boolean {
  const asked = hold.request?.t ?? hold.grant.t
  return hold.wants === 'read' && group.some(other => other !== hold && other.end > asked && other.grant.t < hold.end)
}

/**
 * Finds each grant that was requested after a grant with a larger token had arrived. A re-entry may repeat the largest
 * token.
 */
function wentBack(holds: readonly Hold[], report: Report): void {
  const byRequest = holds.filter(hold => hold.request).sort((a, b) => a.request!.t - b.request!.t)
  let known: Hold | undefined
  let next = 0
  for (const hold of byRequest) {
    for (; next < holds.length && holds[next]!.grant.t < hold.request!.t; next++) {
      if (!known || holds[next]!.grant.token > known.grant.token) known = holds[next]
    }
    if (known && hold.grant.token < known.grant.token && !readsAgain(hold, holds)) {
      report(`token ${hold.grant.token} was requested after ${known.grant.token} had been granted`, known, hold)
    }
  }
}

/**
 * Whether this hold is a re-entry to read by an owner that was already reading. Such a hold has the token of the
 * owner's first hold, although other readers may have been granted larger tokens since then. The process may have
 * relied on the first hold for a shorter time than Redis had it: until its release, if that has ended it.
 */
function readsAgain({ wants, grant, request }: Hold, holds: readonly Hold[]): boolean {
  if (wants !== 'read' || grant.via !== 'reentry') return false
  const { owner, token } = grant
  const lasted = ({ released, end }: Hold) => (released?.result ? released.t : end)
  return holds.some(
    other =>
      other.grant.t < grant.t &&
      lasted(other) > request!.t &&
      other.grant.owner === owner &&
      other.grant.token === token,
  )
}

/**
 * Finds pairs of holds that exclude each other, and whose grants did not arrive in the order of their tokens. With a
 * correct lock this cannot happen: a process stops relying on a hold before the lease ends by the server's clock, and
 * only after that end does the server grant a hold that excludes the first one. Holds that ended, or were taken away,
 * before their grants arrived are left out, because no process relied on them. For each value of `wants`, the check
 * compares a grant only with the hold that has the largest token so far.
 */
function outOfStep(history: History, holds: readonly Hold[], report: Report): void {
  const newest = new Map<string, Hold>()
  for (const hold of holds) {
    if (countedUntil(history, hold) <= hold.grant.t) continue
    const { token } = hold.grant
    for (const other of newest.values()) {
      if (token < other.grant.token && exclude(hold.wants, other.wants)) {
        report(`token ${token} came to be held after ${other.grant.token}`, other, hold)
        break
      }
    }
    const name = nameOf(hold.wants)
    if (token > (newest.get(name)?.grant.token ?? 0)) newest.set(name, hold)
  }
}

function nameOf(wants: Wants | undefined): string {
  return typeof wants === 'object' ? wants.join('/') : (wants ?? '')
}

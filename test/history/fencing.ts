/**
 * I2: the tokens of a key strictly increase from grant to grant. Holds of one owner that re-entered share a token.
 *
 *  repeated     two owners have the same token; or one owner has it twice, but neither re-entered nor was admitted to
 *               read beside its own hold
 *  went back    a grant has a smaller token than another grant that had returned before this one was requested, and is
 *               not another read of an owner that already holds with that token
 *  out of step  a believed grant has a smaller token than one believed before it, and the two cannot have overlapped
 *  ahead        a token is ahead of all times that the servers' clocks have ever shown, by more than a run of local
 *               hand-offs needs: after a loss of data, the same tokens would be issued again
 */
import type { EventOf } from './events.ts'
import { countedUntil } from './exclusion.ts'
import type { History, Hold, Violation } from './history.ts'
import { groupBy } from './lists.ts'
import { exclude, reenters, type Wants } from './wants.ts'

/** How far ahead of all clocks a token may be, in ms: 1 ms for a block of tokens, the rest for the clocks' readings. */
const LEAD = 50

export function checkFencing(history: History): Violation[] {
  const violations: Violation[] = []
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
      if (lead > LEAD) violations.push({ invariant: 'I2', key, text, events: [grant] })
    }
  }
  return violations
}

/** Returns the latest time of day that a server's clock has shown up to the given time, in ms. */
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
 * Whether this hold is a read that waited, and was admitted together with other holds of its owner or beside one. All
 * holds of the group have one token.
 */
function readsBeside(hold: Hold, group: readonly Hold[]): boolean {
  const asked = hold.request?.t ?? hold.grant.t
  return hold.wants === 'read' && group.some(other => other !== hold && other.end > asked && other.grant.t < hold.end)
}

/**
 * Finds requests that were granted with a smaller token than the largest token known when they were made. A re-entry
 * may repeat that token.
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
 * Whether an owner that already reads reads again while others read. Its second hold has the token of its first, and
 * the others' tokens may be larger.
 */
function readsAgain({ wants, grant, request }: Hold, holds: readonly Hold[]): boolean {
  if (wants !== 'read' || grant.via !== 'reentry') return false
  const { owner, token } = grant
  return holds.some(
    other =>
      other.grant.t < grant.t && other.end > request!.t && other.grant.owner === owner && other.grant.token === token,
  )
}

/**
 * Finds believed grants that exclude each other and arrived in another order than that of their tokens. A process stops
 * counting on a hold before the server's lease ends, and so before the server grants a hold that this one excludes. A
 * hold that ended, or was taken away, before its grant arrived was never believed. The check compares each grant with
 * the newest ones, one for each value of `wants`, of which there are few.
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

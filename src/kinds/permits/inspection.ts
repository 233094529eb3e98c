/** Inspection of semaphores and read-write locks. */
import { setImmediate } from 'node:timers/promises'
import type { Found, Pace, Parts, Share, Standing, Traits } from '../../kind.ts'
import { decodePermitsClaim } from '../claim.ts'
import { decodePace, placed } from '../expected.ts'
import { PAGE, QueuedInspection } from '../queued-inspection.ts'
import type { PermitsScripts } from '../scripts.ts'
import {
  decodeQueue,
  firstOf,
  type HolderState,
  type LockState,
  Moment,
  pairs,
  type QueueEntry,
  type WaiterState,
  waitersOf,
} from '../state.ts'
import { inTurn } from './group-order.ts'

/** What a call asks of the lock. */
interface Call {
  /** A holder's token, which Redis makes from the time of the grant, or when a waiter joined, in µs. */
  readonly since: number
  /** How many permits the lock has, according to this call. */
  readonly of: number
  /** The token, or the ticket. */
  readonly at: number
  readonly limit: number | undefined
}

/** What has been read so far. */
interface Reading {
  readonly moment: Moment
  readonly holders: HolderState[]
  readonly waiters: WaiterState[]
  /** By the ids of holders and waiters. */
  readonly calls: Map<string, Call>
  /** Only if the lock has groups: what is known of those with holders or waiters. */
  readonly shares: Map<string, Share>
  virtual?: number
  pace?: Pace | undefined
}

/** What a script call has not read. A page of which nothing was there at the moment is the last one. */
interface Rest {
  /** The deadline and id of the last holder that was read, if there may be more. */
  readonly after: string | undefined
  /** For each queue that may have more entries, the last entry that was read. */
  readonly ends: readonly QueueEntry[]
}

/** Behind all holders, and all waiters. */
const NO_MORE = { after: '9999999999999 ', end: { claim: '', ticket: '+inf' } }

const blank = (): Reading => ({
  moment: new Moment(),
  holders: [],
  waiters: [],
  calls: new Map(),
  shares: new Map(),
})

export class PermitsInspection extends QueuedInspection {
  readonly #parts: Parts<PermitsScripts>
  readonly #stateOf: Traits<LockState>['stateOf']

  /** `stateOf`: turns holders and waiters into the state that `inspect` returns. */
  constructor(
    parts: Parts<PermitsScripts>,
    stateOf: Traits<LockState>['stateOf'],
    sweep: (key: string) => Promise<void>,
  ) {
    super(parts, sweep)
    this.#parts = parts
    this.#stateOf = stateOf
  }

  /** Reads many holders or waiters page by page. All that is shown was there when the first page was read. */
  async inspect(key: string): Promise<LockState> {
    const reading = blank()
    let rest = await this.#page(key, reading, PAGE)
    while (rest.after !== undefined || rest.ends.length > 0) {
      const { after = NO_MORE.after, ends } = rest
      const [behind = NO_MORE.end, ...others] = ends
      const next = await this.#page(key, reading, PAGE, after, behind)
      rest = { ...next, ends: [...others, ...next.ends] }
    }
    const { holders, waiters, calls, shares, virtual, pace } = reading
    let newest: Call | undefined
    for (const call of calls.values()) if (!newest || call.since > newest.since) newest = call
    const turns = virtual === undefined ? undefined : { virtual, shares, asked: calls }
    return this.#stateOf(key, { holders, waiters, permits: newest?.of, pace, ...(turns && { turns }) }, setImmediate)
  }

  async isLocked(key: string): Promise<boolean> {
    const reading = blank()
    await this.#page(key, reading, 1)
    return reading.holders.length > 0
  }

  /**
   * Reads one page: at most `most` holders, starting behind the holder `after`, and at most `most` waiters of each
   * queue. If `behind` is given, the page has waiters only from the queue of that entry, starting behind the entry.
   */
  async #page(key: string, reading: Reading, most: number, after = '', behind?: QueueEntry): Promise<Rest> {
    const { names, scripts } = this.#parts
    const { values } = await scripts.run('inspect', names.of(key), [most, after, behind?.ticket, behind?.claim])
    const [micros, clock, live, records, queue, deadlines, sizes, stored, standing] = values as [
      string,
      string,
      string[],
      string[],
      string[],
      string[],
      number[],
      string,
      string[] | undefined,
    ]
    const { moment, holders, waiters, calls, shares } = reading
    const before = moment.present
    const now = Math.floor(Number(micros) / 1000)
    for (const [i, [, deadline]] of pairs(live).entries()) {
      const [, token, text = ''] = /^(\d+) ([\s\S]*)$/.exec(records[i] ?? '') ?? []
      const claim = decodePermitsClaim(text)
      const fencingToken = Number(token)
      if (!claim || !moment.adds(claim.id, fencingToken)) continue
      const { id, owner, label, wants, slots, group } = claim
      calls.set(id, { since: fencingToken, of: wants[1], at: fencingToken, limit: group?.limit })
      const heldFor = Math.max(0, now - Math.floor(fencingToken / 1000))
      const ttl = Number(deadline) - now
      const more = { ...(group && { group: group.name }), ...(slots && { slots }) }
      holders.push({ id, owner, label, permits: wants[0], ...more, fencingToken, heldFor, ttl })
    }
    const full = moment.present > before && live.length === 2 * most
    const [lastId, deadline] = live.slice(-2)
    const between = moment.present
    const queued = decodeQueue(queue, decodePermitsClaim, moment)
    for (const { claim, joined } of queued) {
      const { id, wants, group, headStart } = claim
      calls.set(id, { since: joined, of: wants[1], at: joined - headStart, limit: group?.limit })
    }
    waiters.push(...waitersOf(queued, new Map(pairs(deadlines)), Number(micros)))
    const [tag, ...known] = standing ?? []
    if (tag !== undefined) reading.virtual ??= Number(tag)
    for (let i = 0; i < known.length; i += 3) {
      const [name, finish, weight] = known.slice(i, i + 3) as [string, string, string]
      const group = decodeURIComponent(name)
      if (!shares.has(group)) shares.set(group, { finish: Number(finish), weight: Number(weight) })
    }
    reading.pace ??= decodePace(stored)
    moment.read(Number(micros), Number(clock))
    let read = 0
    const ends = sizes.flatMap((size): QueueEntry[] => {
      read += size
      const [claim, ticket] = queue.slice(2 * read - 2, 2 * read)
      const more = size === most && moment.present > between
      return more && claim !== undefined && ticket !== undefined ? [{ claim, ticket }] : []
    })
    return { after: full ? `${deadline} ${lastId}` : undefined, ends }
  }
}

/**
 * Sorts holders by the tokens of their grants. The order of their deadlines would change with each renewal. The holds
 * of an owner that has re-entered share a token. Among these, write holds, which have more permits, come before read
 * holds.
 */
export function inOrder(a: HolderState, b: HolderState): number {
  const byGrant = a.fencingToken - b.fencingToken || (b.permits ?? 0) - (a.permits ?? 0)
  return byGrant || (a.id < b.id ? -1 : 1)
}

export async function stateOfSemaphore(
  key: string,
  found: Found,
  expects: Traits['expects'],
  pause?: () => Promise<void>,
): Promise<LockState> {
  const { waiters, permits, turns } = found
  const holders = [...found.holders].sort(inOrder)
  const grouped = turns && [...holders, ...waiters].some(({ group }) => group !== undefined)
  const expected = (at: Standing, pace: Pace, { permits: wants }: WaiterState, of = permits) =>
    expects(at, pace, `${wants}/${of}`)
  return {
    key,
    kind: 'semaphore',
    ...firstOf(holders),
    ...(permits !== undefined && { permits }),
    taken: holders.reduce((sum, { permits = 0 }) => sum + permits, 0),
    holders,
    ...(grouped ? await inTurn(holders, found, turns, expected, pause) : { waiters: placed(waiters, found, expected) }),
  }
}

/** Inspection of semaphores and read-write locks. */
import type { Found, Pace, Parts, Share, Standing, Traits } from '../../kind.ts'
import { decodePermitsClaim } from '../claim.ts'
import { decodePace, placed } from '../expected.ts'
import { PAGE, QueuedInspection } from '../queued-inspection.ts'
import {
  decodeQueue,
  firstOf,
  type HolderState,
  type LockState,
  pairs,
  type QueueEntry,
  type WaiterState,
  waitersOf,
} from '../state.ts'
import { inTurn } from './group-order.ts'
import type { AnsweringScripts } from './group-runner.ts'
import type { PermitsNames } from './names.ts'

/** What one script call reads. */
interface Page {
  readonly holders: readonly HolderState[]
  readonly waiters: readonly WaiterState[]
  /** The deadline and id of the last holder that was read. The next page begins after that holder. */
  readonly last: string
  /** Whether there may be more holders. */
  readonly full: boolean
  /** For each queue that may have more entries, the last entry that was read. */
  readonly ends: readonly QueueEntry[]
  /**
   * For each holder and waiter: how many permits the lock has according to its call (`of`), and a time in µs (`at`).
   * For a waiter, `at` is the time at which it joined. For a holder, `at` is its token, which Redis makes from the time
   * of the grant. So the newest call has the largest `at`.
   */
  readonly numbers: readonly (readonly [at: number, of: number])[]
  /** Only if the lock has groups: what the script says about those of this page. */
  readonly standing: readonly string[] | undefined
  readonly asked: readonly (readonly [id: string, asked: { readonly at: number; readonly limit: number | undefined }])[]
  readonly pace: Pace | undefined
}

export class PermitsInspection extends QueuedInspection {
  readonly #parts: Parts<AnsweringScripts, PermitsNames>
  readonly #stateOf: (key: string, found: Found) => LockState

  /** `stateOf`: turns holders and waiters into the state that `inspect` returns. */
  constructor(
    parts: Parts<AnsweringScripts, PermitsNames>,
    stateOf: (key: string, found: Found) => LockState,
    sweep: (key: string) => Promise<void>,
  ) {
    super(parts, sweep)
    this.#parts = parts
    this.#stateOf = stateOf
  }

  /**
   * Reads many holders or waiters page by page. Holders and waiters that come or go during the reading may or may not
   * be in the result.
   */
  async inspect(key: string): Promise<LockState> {
    const holders = new Map<string, HolderState>()
    const waiters = new Map<string, WaiterState>()
    let latest: readonly [at: number, of: number] | undefined
    const asked = new Map<string, { readonly at: number; readonly limit: number | undefined }>()
    const shares = new Map<string, Share>()
    let virtual: number | undefined
    let last = ''
    const ends: QueueEntry[] = []
    let page: Page
    do {
      page = await this.#page(key, last, PAGE, ends.shift())
      last = page.last
      ends.push(...page.ends)
      for (const holder of page.holders) holders.set(holder.id, holder)
      for (const waiter of page.waiters) if (!waiters.has(waiter.id)) waiters.set(waiter.id, waiter)
      for (const [id, call] of page.asked) asked.set(id, call)
      const [tag, ...known] = page.standing ?? []
      virtual ??= tag === undefined ? undefined : Number(tag)
      for (let i = 0; i < known.length; i += 3) {
        const [group, finish, weight] = known.slice(i, i + 3) as [string, string, string]
        shares.set(decodeURIComponent(group), { finish: Number(finish), weight: Number(weight) })
      }
      for (const number of page.numbers) if (!latest || number[0] > latest[0]) latest = number
    } while (page.full || ends.length > 0)
    return this.#stateOf(key, {
      holders: [...holders.values()],
      waiters: [...waiters.values()],
      permits: latest?.[1],
      pace: page.pace,
      ...(virtual !== undefined && { turns: { virtual, shares, asked } }),
    })
  }

  async isLocked(key: string): Promise<boolean> {
    return (await this.#page(key, '', 1)).holders.length > 0
  }

  /**
   * Reads one page: at most `most` holders, starting behind the holder `after`, and at most `most` waiters of each
   * queue. If `behind` is given, the page has waiters only from the queue of that entry, starting behind the entry.
   */
  async #page(key: string, after: string, most: number, behind?: QueueEntry): Promise<Page> {
    const { names, scripts } = this.#parts
    const args = { most, after, ticket: behind?.ticket, behind: behind?.claim }
    const { values } = await scripts.run('inspect', names.of(key), args)
    const [micros, live, records, queue, deadlines, sizes, stored, standing] = values as [
      string,
      string[],
      string[],
      string[],
      string[],
      number[],
      string,
      string[] | undefined,
    ]
    const now = Math.floor(Number(micros) / 1000)
    const numbers: [number, number][] = []
    const asked: [string, { at: number; limit: number | undefined }][] = []
    const holders = pairs(live).flatMap(([, deadline], i): HolderState[] => {
      const [, token, text = ''] = /^(\d+) ([\s\S]*)$/.exec(records[i] ?? '') ?? []
      const claim = decodePermitsClaim(text)
      if (!claim) return []
      const { id, owner, label, wants, slots } = claim
      const fencingToken = Number(token)
      numbers.push([fencingToken, wants[1]])
      asked.push([id, { at: fencingToken, limit: claim.group?.limit }])
      const group = claim.group && { group: claim.group.name }
      const heldFor = Math.max(0, now - Math.floor(fencingToken / 1000))
      const ttl = Number(deadline) - now
      const more = { ...group, ...(slots && { slots }) }
      return [{ id, owner, label, permits: wants[0], ...more, fencingToken, heldFor, ttl }]
    })
    const queued = decodeQueue(queue, decodePermitsClaim)
    for (const { claim, joined } of queued) {
      numbers.push([joined, claim.wants[1]])
      asked.push([claim.id, { at: joined - claim.headStart, limit: claim.group?.limit }])
    }
    let read = 0
    const ends = sizes.flatMap((size): QueueEntry[] => {
      read += size
      const [claim, ticket] = queue.slice(2 * read - 2, 2 * read)
      return size === most && claim !== undefined && ticket !== undefined ? [{ claim, ticket }] : []
    })
    const waiters = waitersOf(queued, new Map(pairs(deadlines)), Number(micros))
    const [lastId, deadline] = live.slice(-2)
    const last = deadline === undefined ? after : `${deadline} ${lastId}`
    const pace = decodePace(stored)
    return { holders, last, full: live.length === 2 * most, waiters, ends, numbers, pace, standing, asked }
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

export function stateOfSemaphore(key: string, found: Found, expects: Traits['expects']): LockState {
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
    ...(grouped ? inTurn(holders, found, turns, expected) : { waiters: placed(waiters, found, expected) }),
  }
}

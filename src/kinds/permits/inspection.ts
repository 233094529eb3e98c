/** Looking at semaphores and read-write locks from outside. */
import type { Parts } from '../../kind.ts'
import { decodePermitsClaim } from '../claim.ts'
import { PAGE, QueuedInspection } from '../queued-inspection.ts'
import {
  decodeQueue,
  type HolderState,
  type LockState,
  pairs,
  type QueueEntry,
  type WaiterState,
  waitersOf,
} from '../state.ts'
import type { PermitsNames } from './names.ts'
import type { scripts } from './semaphore/scripts.generated.ts'

/** What was found of one lock. */
export interface Found {
  /** In the order of their grants. */
  readonly holders: readonly HolderState[]
  /** In the order of their queues, one queue behind the other. */
  readonly waiters: readonly WaiterState[]
  /** Of how many permits the last asker wanted some; undefined: nobody holds or waits. */
  readonly permits: number | undefined
}

/** A page of it. */
interface Page {
  readonly holders: readonly HolderState[]
  readonly waiters: readonly WaiterState[]
  /** Where the holders end that were read, and whether there may be more. */
  readonly last: string
  readonly full: boolean
  /** The last entry of each queue of which there may be more. */
  readonly ends: readonly QueueEntry[]
  /** Each number that an asker has given, by the time of its token or ticket. */
  readonly numbers: readonly (readonly [at: number, of: number])[]
}

export class PermitsInspection extends QueuedInspection {
  readonly #parts: Parts<typeof scripts, PermitsNames>
  readonly #stateOf: (key: string, found: Found) => LockState

  /** `stateOf`: what is shown of it. */
  constructor(
    parts: Parts<typeof scripts, PermitsNames>,
    stateOf: (key: string, found: Found) => LockState,
    sweep: (key: string) => Promise<void>,
  ) {
    super(parts, sweep)
    this.#parts = parts
    this.#stateOf = stateOf
  }

  /** More than a page of holders or waiters is read page by page: who comes or goes meanwhile may be in it, or not. */
  async inspect(key: string): Promise<LockState> {
    const holders = new Map<string, HolderState>()
    const waiters = new Map<string, WaiterState>()
    let latest: readonly [at: number, of: number] | undefined
    let last = ''
    const ends: QueueEntry[] = []
    let page: Page
    do {
      page = await this.#page(key, last, PAGE, ends.shift())
      last = page.last
      ends.push(...page.ends)
      for (const holder of page.holders) holders.set(holder.id, holder)
      for (const waiter of page.waiters) if (!waiters.has(waiter.id)) waiters.set(waiter.id, waiter)
      for (const number of page.numbers) if (!latest || number[0] > latest[0]) latest = number
    } while (page.full || ends.length > 0)
    const byGrant = [...holders.values()].sort(inOrder)
    return this.#stateOf(key, { holders: byGrant, waiters: [...waiters.values()], permits: latest?.[1] })
  }

  async isLocked(key: string): Promise<boolean> {
    return (await this.#page(key, '', 1)).holders.length > 0
  }

  /** At most so many holders, behind where another page has ended, and as many waiters of each queue, or of one, behind the entry given. */
  async #page(key: string, after: string, most: number, behind?: QueueEntry): Promise<Page> {
    const { names, scripts } = this.#parts
    const args = { most, after, ticket: behind?.ticket, behind: behind?.claim }
    const { values } = await scripts.run('inspect', names.of(key), args)
    const [micros, live, records, queue, deadlines, sizes] = values as [
      string,
      string[],
      string[],
      string[],
      string[],
      number[],
    ]
    const now = Math.floor(Number(micros) / 1000)
    const numbers: [number, number][] = []
    const holders = pairs(live).flatMap(([id, deadline], i): HolderState[] => {
      const [, token, text = ''] = /^(\d+) ([\s\S]*)$/.exec(records[i] ?? '') ?? []
      const claim = decodePermitsClaim(text)
      if (!claim) return []
      const { owner, label, wants } = claim
      const fencingToken = Number(token)
      numbers.push([fencingToken, wants[1]])
      const heldFor = Math.max(0, now - Math.floor(fencingToken / 1000))
      return [{ id, owner, label, permits: wants[0], fencingToken, heldFor, ttl: Number(deadline) - now }]
    })
    const queued = decodeQueue(queue, decodePermitsClaim)
    for (const { claim, joined } of queued) numbers.push([joined, claim.wants[1]])
    let read = 0
    const ends = sizes.flatMap((size): QueueEntry[] => {
      read += size
      const [claim, ticket] = queue.slice(2 * read - 2, 2 * read)
      return size === most && claim !== undefined && ticket !== undefined ? [{ claim, ticket }] : []
    })
    const waiters = waitersOf(queued, new Map(pairs(deadlines)), Number(micros))
    const [lastId, deadline] = live.slice(-2)
    const last = deadline === undefined ? after : `${deadline} ${lastId}`
    return { holders, last, full: live.length === 2 * most, waiters, ends, numbers }
  }
}

/**
 * By their grants, because the order of their deadlines changes with each renewal. Those of one grant, an owner's that has re-entered:
 * first what it writes.
 */
function inOrder(a: HolderState, b: HolderState): number {
  const byGrant = a.fencingToken - b.fencingToken || (b.permits ?? 0) - (a.permits ?? 0)
  return byGrant || (a.id < b.id ? -1 : 1)
}

export function stateOfSemaphore(key: string, { holders, waiters, permits }: Found): LockState {
  return {
    key,
    kind: 'semaphore',
    ...firstOf(holders),
    ...(permits !== undefined && { permits }),
    taken: holders.reduce((sum, { permits = 0 }) => sum + permits, 0),
    holders,
    waiters: waiters.map((waiter, i) => ({ ...waiter, position: i + 1 })),
  }
}

/** The first of them stands for all. */
export function firstOf(holders: readonly HolderState[]) {
  const [first] = holders
  return {
    locked: first !== undefined,
    ...(first && { owner: first.owner, label: first.label, fencingToken: first.fencingToken, ttl: first.ttl }),
    holds: holders.length,
  }
}

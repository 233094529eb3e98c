/** Looking at semaphores from outside. */
import type { Parts } from '../../kind.ts'
import { decodePermitsClaim } from '../claim.ts'
import { PAGE, QueuedInspection } from '../queued-inspection.ts'
import { decodeQueue, type HolderState, type LockState, pairs, type QueueEntry, type WaiterState } from '../state.ts'
import type { PermitsNames } from './names.ts'
import type { scripts } from './scripts.generated.ts'

interface Page {
  readonly holders: readonly HolderState[]
  readonly waiters: readonly WaiterState[]
  /** How many entries of the queue were read, with those that would be passed over. */
  readonly size: number
  readonly last: QueueEntry | undefined
  /** Each number that an asker has given, by the time of its token or ticket. */
  readonly numbers: readonly (readonly [at: number, of: number])[]
}

export class SemaphoreInspection extends QueuedInspection {
  readonly #parts: Parts<typeof scripts, PermitsNames>

  constructor(parts: Parts<typeof scripts, PermitsNames>, sweep: (key: string) => Promise<void>) {
    super(parts, sweep)
    this.#parts = parts
  }

  /** More than a page of holders or waiters is read page by page: who comes or goes meanwhile may be in it, or not. */
  async inspect(key: string): Promise<LockState> {
    const holders = new Map<string, HolderState>()
    const waiters = new Map<string, WaiterState>()
    let latest: readonly [at: number, of: number] | undefined
    let read = 0
    let page: Page | undefined
    while (!page || page.size === PAGE || page.holders.length === PAGE) {
      page = await this.#page(key, read, PAGE, page?.last)
      read += page.holders.length
      for (const holder of page.holders) holders.set(holder.id, holder)
      for (const waiter of page.waiters) if (!waiters.has(waiter.id)) waiters.set(waiter.id, waiter)
      for (const number of page.numbers) if (!latest || number[0] > latest[0]) latest = number
    }
    const all = [...holders.values()]
    const [first] = all
    return {
      key,
      kind: 'semaphore',
      locked: first !== undefined,
      ...(first && { owner: first.owner, label: first.label, fencingToken: first.fencingToken, ttl: first.ttl }),
      holds: all.length,
      ...(latest && { permits: latest[1] }),
      taken: all.reduce((sum, { permits = 0 }) => sum + permits, 0),
      holders: all,
      waiters: [...waiters.values()].map((waiter, i) => ({ ...waiter, position: i + 1 })),
    }
  }

  async isLocked(key: string): Promise<boolean> {
    return (await this.#page(key, 0, 1)).holders.length > 0
  }

  /** At most so many holders, from this one on, and as many waiters that stand behind the one given, or the first. */
  async #page(key: string, from: number, most: number, behind?: QueueEntry): Promise<Page> {
    const { names, scripts } = this.#parts
    const args = { most, from, ticket: behind?.ticket, behind: behind?.claim }
    const { values } = await scripts.run('inspect', names.of(key), args)
    const [micros, live, records, queue, deadlines] = values as [string, string[], string[], string[], string[]]
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
    for (const [text, ticket] of pairs(queue)) {
      const claim = decodePermitsClaim(text)
      if (claim) numbers.push([Number(ticket) + claim.headStart, claim.wants[1]])
    }
    const [claim, ticket] = queue.slice(-2)
    return {
      holders,
      waiters: decodeQueue(queue, new Map(pairs(deadlines)), Number(micros), decodePermitsClaim),
      size: queue.length / 2,
      last: claim === undefined || ticket === undefined ? undefined : { claim, ticket },
      numbers,
    }
  }
}

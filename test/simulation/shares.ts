/**
 * I3 between the groups of a semaphore: checks that groups take turns by weight (docs/guarantees.md#groups).
 *
 * A group could be next if it has a live first waiter, and room for it. While that lasts, each other group may be granted
 * something more only as long as what it has been granted since then, permits divided by weight, is at most the largest
 * job of the waiting group so far. If it is exactly as much, tickets decide. A group without an earlier job has no largest
 * job. So a single job waits for at most one job of each other group, and only for one that came before it.
 */
import type { SimulatedClient } from './client.ts'
import { hasRoom, weightOf } from './lock-state.ts'
import type { Grant } from './witness.ts'

interface Share {
  /** The largest job that the group was granted, permits divided by weight. */
  largest: number
  /** When the group was last granted something, in ms by the server's clock. */
  last: number
  /** For each other group: what it was granted while this group could be next, permits divided by weight. */
  readonly passed: Map<string, number>
}

export class Shares {
  readonly #memory: number
  readonly #locks = new Map<string, Map<string, Share>>()

  /** `memory`: the clients' tokenMemory. What an idle group has had is forgotten after that time. */
  constructor(memory: number) {
    this.#memory = memory
  }

  /**
   * Counts a grant. Returns the waiter that should have been granted its permits first, if there is one. `ticket`: that
   * of the grant; infinite if its caller did not queue. `clientOf` returns the client of an id.
   */
  granted(
    lock: string,
    { claim, state, now }: Grant,
    ticket: number,
    clientOf: (id: string) => SimulatedClient | undefined,
  ): string | undefined {
    const groups = this.#locks.get(lock) ?? new Map<string, Share>()
    this.#locks.set(lock, groups)
    const own = claim.group?.name ?? ''
    const cost = claim.wants![0] / weightOf(state, own)
    const shareOf = (group: string) => {
      const share = groups.get(group) ?? { largest: 0, last: now, passed: new Map<string, number>() }
      groups.set(group, share)
      return share
    }
    const mine = shareOf(own)
    const firsts = new Map(state.queue.map(place => [place.claim.group?.name ?? '', place] as const).reverse())
    let missed: string | undefined
    for (const [group, share] of groups) if (group === own || !firsts.has(group)) share.passed.clear()
    for (const [group, first] of firsts) {
      const { largest, passed } = shareOf(group)
      const waits = first.liveUntil >= now && clientOf(first.claim.id)?.open && hasRoom(state, first.claim, now)
      if (group === own || !waits) passed.clear()
      else {
        const before = now - mine.last < this.#memory ? (passed.get(own) ?? 0) : 0
        if (before > largest || (before === largest && ticket > first.ticket)) missed = first.claim.id
        passed.set(own, before + cost)
      }
    }
    mine.largest = Math.max(mine.largest, cost)
    mine.last = now
    return missed
  }
}

/** Decodes what all kinds store in the same form, for `inspect`. */

import type { Pace } from '../kind.ts'
import type { HolderState, LockState, WaiterState } from '../lock-state.ts'
import type { DecodedClaim } from './claim.ts'

export type { HolderState, LockState, WaiterState } from '../lock-state.ts'

/** An entry of the queue as it is stored in Redis. */
export interface QueueEntry {
  readonly claim: string
  readonly ticket: string
}

/** A page of the queue, and the rest of the lock's state. */
export interface StatePage {
  readonly state: Omit<LockState, 'waiters'>
  readonly waiters: readonly WaiterState[]
  /** How many entries were read, including entries of waiters that have expired; 0: none of them was there at the moment. */
  readonly size: number
  readonly last: QueueEntry | undefined
  readonly pace: Pace | undefined
}

/**
 * The moment at which a lock is shown. A lock with many holders or waiters takes several readings, and it changes between
 * them. What came after the first reading is left out. So all that is shown was there at that moment, although a holder
 * or waiter that has gone since then may be missing.
 */
export class Moment {
  /** How many entries have been read that were there at the moment. An entry may be read twice. */
  present = 0
  readonly #ids = new Set<string>()
  #clock = Number.POSITIVE_INFINITY

  /** Returns whether to show a holder or waiter. `since`: its token, or when it joined the queue. */
  adds(id: string, since: number): boolean {
    if (since > this.#clock) return false
    this.present += 1
    return this.#ids.size < this.#ids.add(id).size
  }

  /** Called after each reading. `clock`: the lock's clock, which later tokens and tickets exceed; or the time, in µs. */
  read(...clock: number[]): void {
    if (this.#clock === Number.POSITIVE_INFINITY) this.#clock = Math.max(...clock)
  }
}

interface QueuedClaim<Decoded extends DecodedClaim = DecodedClaim> {
  readonly claim: Decoded
  /**
   * When the waiter joined the queue, in µs of the server's clock. This is the sum of its ticket and its head start.
   */
  readonly joined: number
}

/** Decodes the entries of a queue, and skips entries that are not claims, or of another moment. */
export function decodeQueue<Decoded extends DecodedClaim>(
  queue: string[],
  decode: (text: string) => Decoded | undefined,
  moment: Moment,
): QueuedClaim<Decoded>[] {
  return pairs(queue).flatMap(([text, ticket]) => {
    const claim = decode(text)
    if (!claim) return []
    const joined = Number(ticket) + claim.headStart
    return moment.adds(claim.id, joined) ? [{ claim, joined }] : []
  })
}

/** Returns the waiters of a queue that have not expired. */
export function waitersOf(
  queue: readonly QueuedClaim[],
  deadlines: Map<string, string>,
  nowMicros: number,
): WaiterState[] {
  const waiters: WaiterState[] = []
  for (const { claim, joined } of queue) {
    const { id, waiterTtl, owner, label, wants, group } = claim
    const deadline = Math.max(joined / 1000 + waiterTtl, Number(deadlines.get(id) ?? 0))
    // The ticket on a server of a quorum may be ahead of the server's clock. The scripts compare whole ms.
    const expiresIn = Math.floor(Math.min(waiterTtl, deadline - Math.floor(nowMicros / 1000)))
    if (expiresIn < 0) continue
    const waited = Math.max(0, Math.floor((nowMicros - joined) / 1000))
    const permits = wants && { permits: wants[0], ...(group && { group: group.name }) }
    waiters.push({ id, owner, label, ...permits, position: waiters.length + 1, waited, expiresIn })
  }
  return waiters
}

export function pairs(flat: string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!])
}

/** Returns the fields `locked` and `holds` of a lock's state, and the fields that describe its first holder. */
export function firstOf(holders: readonly HolderState[]) {
  const [first] = holders
  return {
    locked: first !== undefined,
    ...(first && { owner: first.owner, label: first.label, fencingToken: first.fencingToken, ttl: first.ttl }),
    holds: holders.length,
  }
}

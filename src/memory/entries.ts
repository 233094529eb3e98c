/** The holds and the waiters of a lock in memory, and what `inspect` finds of them. */
import type { Claim, Found, Pace } from '../kind.ts'
import type { HolderState, WaiterState } from '../lock-state.ts'
import type { Called, Tags } from './groups.ts'

/** A claim, with what it asks of the lock. */
export interface Asked extends Claim, Called {
  /** How many permits the lock has, according to this claim. */
  readonly of: number
  readonly mode: 'read' | 'write' | undefined
  /** Whether the claim asks for the numbers of its permits. */
  readonly numbered: boolean
  /** After how many ms the waiter expires if it sends no heartbeat. */
  readonly waiterTtl: number
}

export interface Holding extends Asked {
  readonly token: number
  readonly since: number
  /** Whether the owner held the lock already. */
  readonly again: boolean
  readonly slots: readonly number[] | undefined
  /** Until when the lock stays taken at least. */
  readonly least: number
  /** Whether the hold is over for its caller, and lasts only because of `minHold`. */
  readonly retained: boolean
  until: number
}

export interface Waiting {
  readonly asked: Asked
  readonly ticket: number
  readonly joined: number
  expires: number
}

/** What is found apart from holds and waiters. `tags`: false if the lock has no groups. */
interface Beside {
  readonly now: number
  readonly mutex: boolean
  readonly pace: Pace | undefined
  readonly tags: Tags | false
}

/** `live`: the holds whose leases have not ended. `alive`: the waiters that have not expired, in the order of each line. */
export function foundOf(live: readonly Holding[], alive: readonly Waiting[], beside: Beside): Found {
  const { now, mutex, pace, tags } = beside
  const numbers = [
    ...live.map(({ since, token, of }) => [since, token, of] as const),
    ...alive.map(({ joined, ticket, asked }) => [joined, ticket, asked.of] as const),
  ]
  const [newest] = numbers.sort(([a, m], [b, n]) => b - a || n - m)
  const calls = [
    ...live.map(({ id, token: at, group }) => [id, { at, limit: group?.limit }] as const),
    ...alive.map(({ asked: { id, group }, ticket: at }) => [id, { at, limit: group?.limit }] as const),
  ]
  return {
    permits: newest?.[2],
    pace,
    ...(tags && { turns: { ...tags, asked: new Map(calls) } }),
    holders: live.map(
      ({ id, owner, label, permits, group, slots, token: fencingToken, since, until }): HolderState => ({
        id,
        owner,
        label,
        ...(!mutex && { permits }),
        ...(group && { group: group.name }),
        ...(slots && { slots }),
        fencingToken,
        heldFor: Math.floor(now - since),
        ttl: Math.floor(until - now),
      }),
    ),
    waiters: alive.map(
      ({ asked: { id, owner, label, permits, group }, joined, expires }, i): WaiterState => ({
        id,
        owner,
        label,
        ...(!mutex && { permits }),
        ...(group && { group: group.name }),
        position: i + 1,
        // The ticket may be ahead of the time, if several were issued at once.
        waited: Math.max(0, Math.floor(now - joined)),
        expiresIn: Math.floor(expires - now),
      }),
    ),
  }
}

/** The state of a lock as anyone may see it, and how it is read from the reply of lua/mutex/inspect.lua. */
import { decodeClaim, decodeHolder } from './claim.ts'

/**
 * A waiter of the fair queue.
 * @since 0.1.0
 */
export interface WaiterState {
  /** The `id` of the lease that it will get. @since 0.1.0 */
  readonly id: string
  /** Who waits: the `owner` of its call, or an identity of its own. @since 0.1.0 */
  readonly owner: string
  /** The `label` of its call, or of its client. @since 0.1.0 */
  readonly label: string
  /** Place in the queue, from 1; grants follow it. @since 0.1.0 */
  readonly position: number
  /** ms since it joined. @since 0.1.0 */
  readonly waited: number
  /** ms until it is passed over, unless its process is heard of before. @since 0.1.0 */
  readonly expiresIn: number
}

/**
 * A lock at one moment. `owner`, `label`, `fencingToken` and `ttl` are there while it is held.
 * @since 0.1.0
 */
export interface LockState {
  /** The key of the lock. @since 0.1.0 */
  readonly key: string
  /** Whether anybody holds it. @since 0.1.0 */
  readonly locked: boolean
  /** Who holds it: the `owner` of the call, or an identity of its own. @since 0.1.0 */
  readonly owner?: string
  /** The `label` of the call that holds it, or of its client. @since 0.1.0 */
  readonly label?: string
  /** The number of live holds of the owner; more than 1 by re-entry. @since 0.1.0 */
  readonly holds: number
  /** The fencing token of the present grant. @since 0.1.0 */
  readonly fencingToken?: number
  /** ms until the holder's lease ends. @since 0.1.0 */
  readonly ttl?: number
  /** The fair queue in grant order. Unfair waiters are known to their own clients only. @since 0.1.0 */
  readonly waiters: readonly WaiterState[]
}

/** An entry of the queue as Redis has it. */
export interface QueueEntry {
  readonly claim: string
  readonly ticket: string
}

/** A page of the queue, and the lock without it. */
export interface StatePage {
  readonly state: Omit<LockState, 'waiters'>
  readonly waiters: readonly WaiterState[]
  /** How many entries were read, with those that would be passed over. */
  readonly size: number
  readonly last: QueueEntry | undefined
}

export function decodeState(key: string, values: unknown[]): StatePage {
  const [nowText, holder, holds, queue, deadlines] = values as [
    string,
    string | null,
    number | null,
    string[],
    string[],
  ]
  const nowMicros = Number(nowText)
  const [claim, ticket] = queue.slice(-2)
  return {
    state: stateOf(key, holder ?? '', holds ?? 1, Math.floor(nowMicros / 1000)),
    waiters: decodeQueue(queue, new Map(pairs(deadlines)), nowMicros),
    size: queue.length / 2,
    last: claim === undefined || ticket === undefined ? undefined : { claim, ticket },
  }
}

function stateOf(key: string, holder: string, holds: number, now: number): StatePage['state'] {
  const known = decodeHolder(holder)
  if (!known || known.until < now) return { key, locked: false, holds: 0 }
  const { token, until, claim } = known
  return { key, locked: true, owner: claim.owner, label: claim.label, holds, fencingToken: token, ttl: until - now }
}

/** Takes the claims apart, and leaves out those that would be passed over. */
function decodeQueue(queue: string[], deadlines: Map<string, string>, nowMicros: number): WaiterState[] {
  const waiters: WaiterState[] = []
  for (const [text, ticket] of pairs(queue)) {
    const claim = decodeClaim(text)
    if (!claim) continue
    const { id, waiterTtl, headStart, owner, label } = claim
    const joined = Number(ticket) + headStart
    const deadline = Math.max(joined / 1000 + waiterTtl, Number(deadlines.get(id) ?? 0))
    const expiresIn = Math.floor(deadline - nowMicros / 1000)
    if (expiresIn < 0) continue
    const waited = Math.max(0, Math.floor((nowMicros - joined) / 1000))
    waiters.push({ id, owner, label, position: waiters.length + 1, waited, expiresIn })
  }
  return waiters
}

function pairs(flat: string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!])
}

/** The state of a lock as anyone may see it, and what of it is read alike for every kind. */
import type { DecodedClaim } from './claim.ts'

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
  /** Of a read-write lock: what it wants. @since 0.2.0 */
  readonly mode?: 'read' | 'write'
  /** Of a semaphore: how many permits it wants. @since 0.2.0 */
  readonly permits?: number
  /** Place in the queue, from 1; grants follow it. @since 0.1.0 */
  readonly position: number
  /** ms since it joined. @since 0.1.0 */
  readonly waited: number
  /** ms until it is passed over, unless its process is heard of before. @since 0.1.0 */
  readonly expiresIn: number
}

/**
 * A holder of a lock.
 * @since 0.2.0
 */
export interface HolderState {
  /** The `id` of its lease: of its first, where its owner has re-entered. @since 0.2.0 */
  readonly id: string
  /** Who holds: the `owner` of the call, or an identity of its own. @since 0.2.0 */
  readonly owner: string
  /** The `label` of its call, or of its client. @since 0.2.0 */
  readonly label: string
  /** Of a read-write lock: what it holds. @since 0.2.0 */
  readonly mode?: 'read' | 'write'
  /** Of a semaphore: how many permits it has taken. @since 0.2.0 */
  readonly permits?: number
  /** The fencing token of its grant. @since 0.2.0 */
  readonly fencingToken: number
  /** ms since its grant. @since 0.2.0 */
  readonly heldFor: number
  /** ms until its lease ends. @since 0.2.0 */
  readonly ttl: number
}

/**
 * A lock at one moment. `owner`, `label`, `fencingToken` and `ttl` are there while it is held.
 * @since 0.1.0
 */
export interface LockState {
  /** The key of the lock. @since 0.1.0 */
  readonly key: string
  /** Which lock of this key it is: each kind has one. @since 0.2.0 */
  readonly kind: 'mutex' | 'readWrite' | 'semaphore'
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
  /** Of a semaphore: how many permits it has, as the last asker had it; absent where nobody holds or waits. @since 0.2.0 */
  readonly permits?: number
  /** Of a semaphore: how many of them are taken. @since 0.2.0 */
  readonly taken?: number
  /** All that hold it, in the order of their grants: of a mutex, one at most. @since 0.2.0 */
  readonly holders: readonly HolderState[]
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

/** A claim that stands in a queue. */
interface QueuedClaim<Decoded extends DecodedClaim = DecodedClaim> {
  readonly claim: Decoded
  /** Since when, µs by the server's clock: the ticket of one with a head start is earlier. */
  readonly joined: number
}

/** Takes the entries of a queue apart, and leaves out what is no claim. */
export function decodeQueue<Decoded extends DecodedClaim>(
  queue: string[],
  decode: (text: string) => Decoded | undefined,
): QueuedClaim<Decoded>[] {
  return pairs(queue).flatMap(([text, ticket]) => {
    const claim = decode(text)
    return claim ? [{ claim, joined: Number(ticket) + claim.headStart }] : []
  })
}

/** Those of a queue that would not be passed over. */
export function waitersOf(
  queue: readonly QueuedClaim[],
  deadlines: Map<string, string>,
  nowMicros: number,
): WaiterState[] {
  const waiters: WaiterState[] = []
  for (const { claim, joined } of queue) {
    const { id, waiterTtl, owner, label, wants } = claim
    const deadline = Math.max(joined / 1000 + waiterTtl, Number(deadlines.get(id) ?? 0))
    const expiresIn = Math.floor(deadline - nowMicros / 1000)
    if (expiresIn < 0) continue
    const waited = Math.max(0, Math.floor((nowMicros - joined) / 1000))
    const permits = wants && { permits: wants[0] }
    waiters.push({ id, owner, label, ...permits, position: waiters.length + 1, waited, expiresIn })
  }
  return waiters
}

export function pairs(flat: string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!])
}

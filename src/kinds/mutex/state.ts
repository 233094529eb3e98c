/** The state of a lock as anyone may see it, and how it is read from the reply of lua/inspect.lua. */

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
    state: decodeHolder(key, holder ?? '', holds ?? 1, Math.floor(nowMicros / 1000)),
    waiters: decodeQueue(queue, new Map(pairs(deadlines)), nowMicros),
    size: queue.length / 2,
    last: claim === undefined || ticket === undefined ? undefined : { claim, ticket },
  }
}

function decodeHolder(key: string, holder: string, holds: number, now: number): StatePage['state'] {
  const [, token, until, text] = /^(\d+) (\d+) ([\s\S]*)$/.exec(holder) ?? []
  const ttl = Number(until) - now
  const claim = text === undefined || ttl < 0 ? undefined : decodeClaim(text)
  if (!claim) return { key, locked: false, holds: 0 }
  const { owner, label } = claim
  return { key, locked: true, owner, label, holds, fencingToken: Number(token), ttl }
}

/** Takes the claims apart, and leaves out those that would be passed over. */
function decodeQueue(queue: string[], deadlines: Map<string, string>, nowMicros: number): WaiterState[] {
  const waiters: WaiterState[] = []
  for (const [text, ticket] of pairs(queue)) {
    const claim = decodeClaim(text)
    if (!claim) continue
    const { id, ttl, headStart, owner, label } = claim
    const joined = Number(ticket) + headStart
    const deadline = Math.max(joined / 1000 + ttl, Number(deadlines.get(id) ?? 0))
    const expiresIn = Math.floor(deadline - nowMicros / 1000)
    if (expiresIn < 0) continue
    const waited = Math.max(0, Math.floor((nowMicros - joined) / 1000))
    waiters.push({ id, owner, label, position: waiters.length + 1, waited, expiresIn })
  }
  return waiters
}

/** lua/include/claim.lua has its form. */
export function decodeClaim(text: string) {
  const parts = /^(\S+) (\d+) \d+ (\d+) (\d+) ([\s\S]*)$/.exec(text)
  if (!parts) return undefined
  const [, id, bytes, ttl, headStart, rest] = parts as unknown as string[]
  const names = Buffer.from(rest!)
  const length = Number(bytes)
  return {
    id: id!,
    ttl: Number(ttl),
    headStart: Number(headStart),
    owner: length === 0 ? id! : names.toString('utf8', 0, length),
    label: names.toString('utf8', length),
  }
}

function pairs(flat: string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!])
}

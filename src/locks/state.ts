/** The state of a lock as anyone may see it, and how it is read from the reply of lua/inspect.lua. */

/** A waiter of the fair queue. */
export interface WaiterState {
  /** The `id` of the lease that it will get. */
  readonly id: string
  readonly owner: string
  readonly label: string
  /** Place in the queue, from 1; grants follow it. */
  readonly position: number
  /** ms since it joined. */
  readonly waited: number
  /** ms until it is passed over, unless its process is heard of before. */
  readonly expiresIn: number
}

/** A lock at one moment. `owner`, `label`, `fencingToken` and `ttl` are there while it is held. */
export interface LockState {
  readonly key: string
  readonly locked: boolean
  readonly owner?: string
  readonly label?: string
  /** Live holds of the owner; more than 1 by re-entry. */
  readonly holds: number
  readonly fencingToken?: number
  /** ms until the holder's lease ends. */
  readonly ttl?: number
  /** The fair queue in grant order. Unfair waiters are known to their own clients only. */
  readonly waiters: readonly WaiterState[]
}

export function decodeState(key: string, values: unknown[]): LockState {
  const [nowText, holder, queue, deadlineList] = values as [string, (string | null)[], string[], string[]]
  const nowMicros = Number(nowText)
  const now = Math.floor(nowMicros / 1000)
  const waiters = decodeQueue(queue, new Map(pairs(deadlineList)), nowMicros)
  const [owner, label, token, until, , holds] = holder
  const ttl = Number(until) - now
  if (typeof owner !== 'string' || ttl < 0) return { key, locked: false, holds: 0, waiters }
  return {
    key,
    locked: true,
    owner,
    label: label ?? '',
    holds: holds ? Number(holds) : 1,
    fencingToken: Number(token),
    ttl,
    waiters,
  }
}

/** Takes the entries apart (lua/include/promote.lua has their form) and leaves out those that would be passed over. */
function decodeQueue(queue: string[], deadlines: Map<string, string>, nowMicros: number): WaiterState[] {
  const waiters: WaiterState[] = []
  for (const [entry, ticket] of pairs(queue)) {
    const parts = /^(\S+) (\d+) (\d+) (\d+) (\d+) ([\s\S]*)$/.exec(entry)
    if (!parts) continue
    const [, id, , ttl, headStart, bytes, rest] = parts as unknown as string[]
    const joined = Number(ticket) + Number(headStart)
    const deadline = Math.max(joined / 1000 + Number(ttl), Number(deadlines.get(id!) ?? 0))
    const expiresIn = Math.floor(deadline - nowMicros / 1000)
    if (expiresIn < 0) continue
    const text = Buffer.from(rest!)
    const owner = text.toString('utf8', 0, Number(bytes))
    const label = text.toString('utf8', Number(bytes))
    const waited = Math.max(0, Math.floor((nowMicros - joined) / 1000))
    waiters.push({ id: id!, owner, label, position: waiters.length + 1, waited, expiresIn })
  }
  return waiters
}

function pairs(flat: string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!])
}

/**
 * Notifies a watcher of the decisions of a script. A script only returns its reply, so its decisions are derived from
 * its arguments, from the lock before and after the run, and from the waiters that joined the queue during the run.
 */
import type { DecodedClaim } from '../../src/kinds/claim.ts'
import type { MutexScripts } from '../../src/kinds/scripts.ts'
import { claimOf, isHeld, isKept, isReadWrite, isShared, keptId, type LockState } from './lock-state.ts'
import type { Reply } from './redis/lua.ts'

export type ScriptName = keyof MutexScripts

/** A watcher is notified of each decision of a script. It must not change anything. */
export interface Watcher {
  /** The server has granted the lock to the claim in `grant`. */
  granted(lock: string, grant: Grant): void
  /** The lock's owner has re-entered: its new hold `id` has the same token as the hold that it already had. */
  reentered(lock: string, id: string, token: number): void
  /** A request for a read-write lock was answered. */
  asked(lock: string, answer: Answer): void
  /** The hold with this id has ended, because the client released or withdrew it. */
  dropped(id: string): void
  /**
   * The server has recorded a hand-off within a client: the hold now belongs to another lease of this client, and has
   * this token.
   */
  passed(lock: string, hold: string, token: number): void
  /** These holds have ended by a forced release of the client `by`, or by a loss of data. */
  taken(ids: readonly string[], by?: string): void
  /**
   * If `again` is false: the waiter has joined the queue with this ticket. If `again` is true: the waiter's heartbeat
   * contained this ticket. The waiter has then joined the queue again, or it was still in the queue.
   */
  joined(id: string, ticket: number, lock: string, again: boolean): void
  /** A waiter has left the queue by its own request. */
  left(id: string): void
}

/** Ignores everything. */
export const nobody: Watcher = {
  granted() {},
  reentered() {},
  asked() {},
  dropped() {},
  passed() {},
  taken() {},
  joined() {},
  left() {},
}

export interface Grant {
  readonly claim: DecodedClaim
  readonly token: number
  /** The last token of the block that came with this grant, for hand-offs within the client. */
  readonly lastToken: number
  /** The lock just before the grant; `state` is the lock just after it. */
  readonly before: LockState
  readonly state: LockState
  /** ms by the server's clock. */
  readonly now: number
}

export interface Answer {
  readonly claim: DecodedClaim
  readonly before: LockState
  readonly after: LockState
  /** Whether the client has received an answer to an earlier request of the same call. */
  readonly waits: boolean
  /** Whether the request was refused as a deadlock, because its owner would wait for itself. */
  readonly deadlock: boolean
  /** ms by the server's clock. */
  readonly now: number
}

/** A waiter that a script has added to the queue. */
export interface Joined {
  readonly claim: string
  readonly ticket: number
}

/** One run of a script, and its effect on one of its locks. */
export interface Run {
  readonly name: ScriptName
  readonly argv: readonly string[]
  readonly lock: string
  readonly before: LockState
  readonly after: LockState
  readonly joined: readonly Joined[]
  readonly reply: Reply
  /** ms by the server's clock. */
  readonly now: number
}

export function witness(watcher: Watcher, run: Run): void {
  tellOfQueue(watcher, run)
  if (isShared(run.lock)) tellOfHolders(watcher, run)
  else tellOfHolder(watcher, run)
}

/**
 * Reports a script's decisions about a semaphore or a read-write lock. Grants are reported in the order of their
 * tokens.
 */
function tellOfHolders(watcher: Watcher, run: Run): void {
  const { name, lock, before, after, now } = run
  if (name === 'acquire' && isReadWrite(lock)) {
    const claim = claimOf(lock, run.argv[0]!)
    // In lua/permits/acquire.lua, `waits` is the argument after `claim` and `mode`.
    const waits = run.argv[2] !== undefined
    watcher.asked(lock, { claim, before, after, waits, deadlock: run.reply === 'deadlock', now })
  }
  const isNew = (id: string) => before.holders.get(id)?.token !== after.holders.get(id)?.token
  const ended = (id: string) => before.holders.has(id) && isNew(id)
  if (name === 'release' || name === 'leave') {
    const id = run.argv[0]!
    if (ended(id)) watcher.dropped(id)
  } else if (name === 'forceRelease') watcher.taken([...before.holders.keys()].filter(ended))
  // If a new hold has the token of an earlier hold, its owner already held the lock, so this is no new grant. The owner
  // has re-entered, or another waiter of this owner was admitted from the queue.
  const known = new Set([...before.holders.values()].map(({ token }) => token))
  const granted = [...after.holders].filter(([id]) => isNew(id) && !isKept(id)).map(([, holder]) => holder)
  for (const holder of granted.sort((a, b) => a.token - b.token)) {
    if (known.has(holder.token)) watcher.reentered(lock, holder.claim.id, holder.token)
    else watcher.granted(lock, { ...holder, before, state: after, now })
    known.add(holder.token)
  }
}

function tellOfHolder(watcher: Watcher, run: Run): void {
  const { name, lock, before, after, now } = run
  const { holder } = after
  const moved = holder !== undefined && isAnother(before, after)
  const ended = (id: string) => before.holds.has(id) && (moved || !after.holds.has(id))
  if (name === 'release' || name === 'leave') {
    const id = run.argv[0]!
    if (ended(id)) watcher.dropped(id)
  } else if (name === 'forceRelease') {
    watcher.taken([...before.holds.keys()].filter(ended), run.argv[0]!.split(':')[0])
  } else if (name === 'pass') {
    if (moved) watcher.passed(lock, holder.claim.id, holder.token)
    return
  }
  if (moved) {
    const { claim, token, lastToken } = holder
    watcher.granted(lock, { claim, token, lastToken, before, state: after, now })
  } else if (name === 'acquire' && holder) {
    const { id } = claimOf(lock, run.argv[0]!)
    if (isHeld(after.holds, id, now) && !isHeld(before.holds, id, now)) watcher.reentered(lock, id, holder.token)
  }
}

/**
 * Reports the waiters that joined the queue or left it. Also reports every ticket in the arguments of a heartbeat,
 * because the watcher checks that the server has issued this ticket to the same waiter before.
 */
function tellOfQueue(watcher: Watcher, run: Run): void {
  const { name, argv, lock, before, joined, now } = run
  if (name === 'leave' && argv[1] !== undefined) watcher.left(run.argv[0]!)
  const again = name === 'tend'
  for (const { claim, ticket } of joined) watcher.joined(claimOf(lock, claim).id, ticket, lock, again)
  if (!again) return
  for (let i = 1; i < argv.length; i += 2) {
    const { id } = claimOf(lock, argv[i]!)
    if (!isHeld(before.holds, id, now)) watcher.joined(id, Number(argv[i + 1]), lock, true)
  }
}

/** Whether the lock has a new holder. If the new holder has the token of the old one, a script has made a mistake. */
function isAnother(before: LockState, after: LockState): boolean {
  const [old, present] = [before.holder, after.holder!]
  if (old?.token !== present.token) return true
  if (present.claim.id === keptId(old.claim.id)) return false
  return old.claim.id !== present.claim.id && after.holds.has(present.claim.id)
}

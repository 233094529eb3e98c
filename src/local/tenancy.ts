/**
 * A client's holds of one lock, and the run of hand-offs to which they belong. This file has no I/O and no timer.
 *
 * The lock is handed on within the client, without a round trip, only if all of this is true:
 *   - The hold is held, and no question to Redis about it is under way.
 *   - At least half of the lease's length, and at most all of it, is certainly left. If the lease was prolonged beyond
 *     its length, the heir would get more time than it asked for.
 *   - It is the owner's only hold, no other caller can name that owner, and the owner has not begun to re-enter.
 *
 * run.ts says why that is safe.
 */
import type { Claim, Granted, Refused } from '../kind.ts'
import { Hold } from './hold.ts'
import { type Inherited, Run } from './run.ts'

export class Tenancy {
  /** The holds, oldest first. Nearly every lock has only one hold, which is then stored without a set. */
  #holds: Hold | Set<Hold> | undefined
  #run: Run | undefined

  get empty(): boolean {
    return this.#holds === undefined
  }

  /** The holds, oldest first. */
  get holds(): Iterable<Hold> {
    const holds = this.#holds ?? []
    return holds instanceof Hold ? [holds] : holds
  }

  get oldest(): Hold | undefined {
    for (const hold of this.holds) return hold
    return undefined
  }

  /** Returns all holds of one grant: the first hold, and the re-entrant holds that have the same token. */
  ofGrant({ token }: Hold): Hold[] {
    return [...this.holds].filter(hold => hold.token === token)
  }

  add(hold: Hold): void {
    const holds = this.#holds
    if (holds instanceof Set) holds.add(hold)
    else this.#holds = holds ? new Set([holds, hold]) : hold
  }

  drop(hold: Hold): void {
    const holds = this.#holds
    if (!(holds instanceof Set)) this.#holds = undefined
    else if (holds.delete(hold) && holds.size === 1) for (const last of holds) this.#holds = last
  }

  /** Ends a hold in order to hand the lock on. Returns false if the lock cannot be handed on. */
  end(hold: Hold, now: number): boolean {
    return goesOn(hold, now) && this.#holds === hold && !hold.inQuestion && hold.end()
  }

  /**
   * Returns the run that a grant begins or continues, if any. `alone`: all known waiters of the lock are in this
   * client.
   */
  runOf(claim: Claim, grant: Granted | Inherited, now: number, alone: boolean): Run | undefined {
    if ('run' in grant) {
      grant.run.owner = claim.owner
      return grant.run
    }
    // An owner with a name may also hold the lock in other processes, so its grant begins no run.
    if (!grant.block || claim.owner !== claim.id) return undefined
    // Redis does not grant the lock while an earlier run lasts. So that run has ended in Redis, and it ends here, too.
    this.#run?.end()
    this.#run = new Run(claim, grant, now, alone)
    return this.#run
  }

  /**
   * While a hold may hand the lock on, returns the refusal that a waiter gets without a request to Redis. Its `ttl` is
   * the time for which the hold may still hand the lock on. Returns undefined if no hold may hand the lock on.
   */
  refusal(now: number): Refused | undefined {
    const hold = this.oldest
    const ttl = hold?.run?.left(now) ?? 0
    if (!hold || ttl <= 0) return undefined
    const holder = { label: hold.claim.label, since: hold.since }
    return { granted: false, sent: now, ttl, position: 0, ticket: '0', holder, clock: 0 }
  }

  /**
   * Called before a caller sends Redis a request that names this owner, because Redis must first know the lock's
   * holder. Returns the run whose newest hold Redis may not know.
   */
  naming(owner: string): Run | undefined {
    // This owner may hold the lock now, and may release that hold before its re-entry is answered. If an heir got the
    // lock then, the heir and the re-entered owner would both hold it. So the run ends.
    if (this.#run?.owner === owner) this.#run.end()
    return this.#run
  }

  /** Ends the run, because the lock goes back to Redis, or is lost. */
  endRun(run: Run): void {
    run.end()
    if (this.#run === run) this.#run = undefined
  }
}

/**
 * Returns whether the run may continue, and whether the time left is enough for an heir: at least half of the lease's
 * length, and at most all of it.
 */
export function goesOn({ run, deadline, length }: Hold, now: number): boolean {
  const left = deadline - now
  return run !== undefined && run.left(now) > 0 && left >= length / 2 && left <= length
}

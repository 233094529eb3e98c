/**
 * A client's holds of one lock, and the run of hand-offs to which they belong. This file has no I/O and no timer.
 *
 * The lock is handed on within the client, without a round trip, only if all of this is true:
 *   - The hold is live, and Redis is not being asked whether it still exists.
 *   - The time left is at least half of the lease's length, and at most its whole length. After `lease.renew`, more
 *     time than that can be left. The next holder would then get more time than it asked for.
 *   - It is the owner's only hold, no other call can have the same owner, and the owner has not begun to re-enter.
 *
 * run.ts says why such a hand-off is safe.
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
   * Returns the run of hand-offs to which a grant belongs: the run that it continues, or a new one. Returns undefined
   * if the grant belongs to no run. `alone`: whether the lock seems to have no waiters in other clients.
   */
  runOf(claim: Claim, grant: Granted | Inherited, now: number, alone: boolean): Run | undefined {
    if ('run' in grant) {
      grant.run.owner = claim.owner
      return grant.run
    }
    // If the caller has set an owner, calls in other processes may have the same owner, and may hold the lock, too. So
    // after the end of this client's hold, another hold of the owner may remain. This client must not hand the lock on
    // then, so the grant begins no run.
    if (!grant.block || claim.owner !== claim.id) return undefined
    // Redis does not grant the lock while an earlier run lasts. As it has granted the lock, the earlier run has ended in
    // Redis, and it ends here, too.
    this.#run?.end()
    this.#run = new Run(claim, grant, now, alone)
    return this.#run
  }

  /**
   * If a hold may hand the lock on within this client, returns a refusal for new callers. They then wait for that hold
   * to end, and do not ask Redis. The refusal's `ttl` says for how long the hold may still hand the lock on. Otherwise
   * returns undefined.
   */
  refusal(now: number): Refused | undefined {
    const hold = this.oldest
    const ttl = hold?.run?.left(now) ?? 0
    if (!hold || ttl <= 0) return undefined
    const holder = { label: hold.claim.label, since: hold.since }
    return { granted: false, sent: now, ttl, position: 0, ticket: '0', holder, clock: 0 }
  }

  /**
   * Called when a call has set an owner, before the call's request is sent to Redis (see `Holds.record`). Returns the
   * lock's run of hand-offs, because Redis may not know the newest hold of that run yet.
   */
  naming(owner: string): Run | undefined {
    // If this owner holds the lock now, the call may re-enter. Before Redis answers the call, the owner may release its
    // present hold. If this release handed the lock on to a waiter, the waiter and the re-entered owner would both hold
    // the lock. So the run ends.
    if (this.#run?.owner === owner) this.#run.end()
    return this.#run
  }

  /** Ends the run: the lock is no longer handed on within this client. */
  endRun(run: Run): void {
    run.end()
    if (this.#run === run) this.#run = undefined
  }
}

/**
 * Returns whether the run may continue, and whether the time left suits the next holder: at least half of the lease's
 * length, and no more than its whole length.
 */
export function goesOn({ run, deadline, length }: Hold, now: number): boolean {
  const left = deadline - now
  return run !== undefined && run.left(now) > 0 && left >= length / 2 && left <= length
}

/**
 * A client's holds of one lock, and the run of hand-offs that they continue. There is no I/O and no timer here.
 *
 * The lock is handed on within the client, without a round trip, only if all of this is true:
 *   - The hold is held, and no question to Redis about it is under way.
 *   - At least half of its lease certainly lasts, and not more than all of it. If the lease was prolonged further, the
 *     heir would get time that it never asked for.
 *   - It is the only hold of its owner, nobody else can name that owner, and the owner has not begun to re-enter.
 *
 * run.ts says why that is safe.
 */
import type { Claim, Granted, Refused } from '../kind.ts'
import { Hold } from './hold.ts'
import { type Inherited, Run } from './run.ts'

export class Tenancy {
  /** Oldest first. Nearly every lock has only one hold, which is then stored without a set. */
  #holds: Hold | Set<Hold> | undefined
  #run: Run | undefined

  get empty(): boolean {
    return this.#holds === undefined
  }

  /** Oldest first. */
  get holds(): Iterable<Hold> {
    const holds = this.#holds ?? []
    return holds instanceof Hold ? [holds] : holds
  }

  get oldest(): Hold | undefined {
    for (const hold of this.holds) return hold
    return undefined
  }

  /** The holds of the same grant: this one, and those that have re-entered it. */
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

  /** Ends a hold in order to hand its lock on. False: that is not possible. */
  end(hold: Hold, now: number): boolean {
    return goesOn(hold, now) && this.#holds === hold && !hold.inQuestion && hold.end()
  }

  /**
   * The run that a grant begins or continues; undefined: it does neither. `alone`: no waiter outside this client is
   * known.
   */
  runOf(claim: Claim, grant: Granted | Inherited, now: number, alone: boolean): Run | undefined {
    if ('run' in grant) {
      grant.run.owner = claim.owner
      return grant.run
    }
    // An owner with a name may hold the lock in other processes, too.
    if (!grant.block || claim.owner !== claim.id) return undefined
    // If an earlier run has not ended here, it has in Redis, because Redis grants the lock again.
    this.#run?.end()
    this.#run = new Run(claim, grant, now, alone)
    return this.#run
  }

  /**
   * The refusal that a waiter gets without asking Redis, while a hold may hand the lock on; its `ttl` says for how long
   * that may be. Undefined: no hold may.
   */
  refusal(now: number): Refused | undefined {
    const hold = this.oldest
    const ttl = hold?.run?.left(now) ?? 0
    if (!hold || ttl <= 0) return undefined
    const holder = { label: hold.claim.label, since: hold.since }
    return { granted: false, sent: now, ttl, position: 0, ticket: '0', holder, clock: 0 }
  }

  /**
   * A caller is about to send Redis a request with this owner's name. By then Redis must know who has the lock. Returns
   * the run that Redis may not know of.
   */
  naming(owner: string): Run | undefined {
    // If this owner holds the lock, it may release before its re-entry is answered. An heir would then hold the lock
    // beside the owner that has re-entered. So the run ends.
    if (this.#run?.owner === owner) this.#run.end()
    return this.#run
  }

  /** The lock goes back to Redis, or is lost. */
  endRun(run: Run): void {
    run.end()
    if (this.#run === run) this.#run = undefined
  }
}

/** Whether the run may go on, and the time left of the lease suits an heir: at least half of it, and at most all. */
export function goesOn({ run, deadline, length }: Hold, now: number): boolean {
  const left = deadline - now
  return run !== undefined && run.left(now) > 0 && left >= length / 2 && left <= length
}

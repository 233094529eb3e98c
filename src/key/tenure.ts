/** The holds that this client has of one key, and the run of hand-offs to which they belong. */
import type { Claim, Granted } from '../kind.ts'
import { Hold } from './hold.ts'
import { type Records, Run } from './run.ts'

export abstract class Tenure {
  /** Nearly every key has only one hold, which is then stored without a set. */
  protected own: Hold | Set<Hold> | undefined
  protected run: Run | undefined
  /** The holds by their tokens, if they were asked for since a hold was last added or dropped. */
  #grants: Map<number, Hold[]> | undefined
  /** How many waiters of the key have not settled, wherever they wait. io.ts counts each waiter that arrives. */
  present = 0

  /** Called when the key may have become idle. */
  protected abstract forgetIfIdle(): void

  /** The holds, oldest first. */
  get holds(): Iterable<Hold> {
    const holds = this.own ?? []
    return holds instanceof Hold ? [holds] : holds
  }

  get oldest(): Hold | undefined {
    if (this.own instanceof Hold) return this.own
    for (const hold of this.own ?? []) return hold
    return undefined
  }

  /** Returns all holds of one grant: the first hold, and the re-entrant holds that have the same token. */
  ofGrant({ token }: Hold): readonly Hold[] {
    if (!this.#grants) {
      this.#grants = new Map()
      for (const hold of this.holds) {
        const same = this.#grants.get(hold.token)
        if (same) same.push(hold)
        else this.#grants.set(hold.token, [hold])
      }
    }
    return this.#grants.get(token) ?? []
  }

  addHold(hold: Hold): void {
    const holds = this.own
    this.#grants = undefined
    if (holds instanceof Set) holds.add(hold)
    else this.own = holds ? new Set([holds, hold]) : hold
  }

  dropHold(hold: Hold): void {
    const holds = this.own
    this.#grants = undefined
    if (!(holds instanceof Set)) this.own = undefined
    else if (holds.delete(hold) && holds.size === 1) for (const last of holds) this.own = last
    if (!this.own && this.present === 0) this.forgetIfIdle()
  }

  /** Begins the run of hand-offs for which this grant by Redis has reserved tokens; undefined if there can be none. */
  runOf(claim: Claim, grant: Granted, now: number, records: Pick<Records, 'late'>): Run | undefined {
    // If the caller has set an owner, calls in other processes may have the same owner, and may hold the lock, too. So
    // after the end of this client's hold, another hold of the owner may remain. This client must not hand the lock on
    // then, so the grant begins no run.
    if (claim.owner !== claim.id) return undefined
    // Redis does not grant the lock while an earlier run lasts. As it has granted the lock, the earlier run has ended in
    // Redis, and it ends here, too.
    this.run?.end()
    this.run = new Run(claim, grant, now, records)
    return this.run
  }

  /**
   * Called when a call has set an owner, before the call's request is sent to Redis (see `Holds.record`). Returns the
   * key's run of hand-offs, because Redis may not know the newest hold of that run yet.
   */
  naming(owner: string): Run | undefined {
    // If this owner holds the lock now, the call may re-enter. Before Redis answers the call, the owner may release its
    // present hold. If this release handed the lock on to a waiter, the waiter and the re-entered owner would both hold
    // the lock. So the run ends.
    if (this.run?.owner === owner) this.run.end()
    return this.run
  }

  /** Ends the run: the lock is no longer handed on within this client. */
  endRun(run: Run): void {
    run.end()
    if (this.run === run) this.run = undefined
  }
}

/** What a key decides about the holds that this client has of it, and about the run of hand-offs to which they belong. */
import type { Claim, Granted } from '../kind.ts'
import type { Hold } from './hold.ts'
import { Run, type RunRecords } from './run.ts'

export class KeyHolds {
  run: Run | undefined
  /** Nearly every key has only one hold, which is then stored without a set. */
  #own: Hold | Set<Hold> | undefined
  /** The holds by their tokens, if they were asked for since a hold was last added or dropped. */
  #grants: Map<number, Hold[]> | undefined

  get any(): boolean {
    return this.#own !== undefined
  }

  /** The holds, oldest first. */
  get all(): Iterable<Hold> {
    const own = this.#own ?? []
    return own instanceof Set || Array.isArray(own) ? own : [own]
  }

  get oldest(): Hold | undefined {
    if (!(this.#own instanceof Set)) return this.#own
    for (const hold of this.#own) return hold
    return undefined
  }

  /** Returns all holds of one grant: the first hold, and the re-entrant holds that have the same token. */
  ofGrant({ token }: Hold): readonly Hold[] {
    if (!this.#grants) {
      this.#grants = new Map()
      for (const hold of this.all) {
        const same = this.#grants.get(hold.token)
        if (same) same.push(hold)
        else this.#grants.set(hold.token, [hold])
      }
    }
    return this.#grants.get(token) ?? []
  }

  add(hold: Hold): void {
    const own = this.#own
    this.#grants = undefined
    if (own instanceof Set) own.add(hold)
    else this.#own = own ? new Set([own, hold]) : hold
  }

  drop(hold: Hold): void {
    const own = this.#own
    this.#grants = undefined
    if (!(own instanceof Set)) this.#own = undefined
    else if (own.delete(hold) && own.size === 1) for (const last of own) this.#own = last
  }

  /** Begins the run of hand-offs for which this grant by Redis has reserved tokens; undefined if there can be none. */
  runOf(claim: Claim, grant: Granted, now: number, records: RunRecords): Run | undefined {
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

  /** Ends the run: the lock is no longer handed on within this client. */
  endRun(run: Run): void {
    run.end()
    if (this.run === run) this.run = undefined
  }

  /**
   * A call names this owner, and its request is about to be sent to Redis (see `Holds.record`). Returns the key's run
   * of hand-offs, because Redis may not know the newest hold of that run yet.
   */
  naming(owner: string): Run | undefined {
    // If this owner holds the lock now, the call may re-enter. Before Redis answers the call, the owner may release its
    // present hold. If this release handed the lock on to a waiter, the waiter and the re-entered owner would both hold
    // the lock. So the run ends.
    if (this.run?.owner === owner) this.run.end()
    return this.run
  }

  /** Whether this hold may hand the lock on: it certainly lasts, is the only one, and Redis is not being asked about it. */
  mayHandOn(hold: Hold, now: number): boolean {
    return this.#own === hold && !hold.inQuestion && this.goesOn(hold, now)
  }

  /**
   * Whether the run of the hold goes on after it. The time left has to suit the next holder: at least half of the lease's
   * length, and no more than its whole length. After `lease.renew`, more time than that can be left. The next holder would
   * then get more time than it asked for.
   */
  goesOn({ run, deadline, length }: Hold, now: number): boolean {
    if (run === undefined || run.left(now) <= 0) return false
    const left = deadline - now
    return left >= length / 2 && left <= length
  }

  /** For how many ms a hold may still hand the lock on to the waiters of this client; 0 if none will. */
  handsOnFor(now: number): number {
    return this.oldest?.run?.left(now) ?? 0
  }
}

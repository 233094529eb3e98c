/**
 * What a client holds of one lock: its holds, and the run of hand-offs that they continue. No I/O and no timer.
 *
 * The lock is handed on within the client, without a round trip, only where nothing about the hold is open: it is held; at
 * least half of its lease surely lasts, and not more than all of it, because a lease that was prolonged further would leave its
 * heir a time that it never asked for; it is the only hold of its owner, whom nobody else can name and who has not begun to
 * re-enter; and no question about it is under way. run.ts says why that is safe.
 */
import type { Claim, Granted, Refused } from '../kind.ts'
import { Hold } from './hold.ts'
import { type Inherited, Run } from './run.ts'

export class Tenancy {
  /** Oldest first. Nearly every lock has one hold only, which then stands there itself. */
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

  /** Those of the same grant: this one, and those that have re-entered. */
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

  /** Ends a hold that is handed on. False: that cannot be. */
  end(hold: Hold, now: number): boolean {
    return goesOn(hold, now) && this.#holds === hold && !hold.inQuestion && hold.end()
  }

  /** The run that a grant begins or continues, if it does. `alone`: nobody outside this client is known to wait. */
  runOf(claim: Claim, grant: Granted | Inherited, now: number, alone: boolean): Run | undefined {
    if ('run' in grant) {
      grant.run.owner = claim.owner
      return grant.run
    }
    // An owner with a name may hold the lock elsewhere, too.
    if (!grant.block || claim.owner !== claim.id) return undefined
    // An earlier run that has not ended here has in Redis, which grants the lock anew.
    this.#run?.end()
    this.#run = new Run(claim, grant, now, alone)
    return this.#run
  }

  /** What a request would be told while a hold may hand the lock on, and for how long; undefined: none may. */
  refusal(now: number): Refused | undefined {
    const hold = this.oldest
    const ttl = hold?.run?.left(now) ?? 0
    if (!hold || ttl <= 0) return undefined
    const holder = { label: hold.claim.label, since: hold.since }
    return { granted: false, sent: now, ttl, position: 0, ticket: '0', holder, clock: 0 }
  }

  /** A caller is about to name this owner to Redis, which has to know by then who has the lock: the run of which it may not know. */
  naming(owner: string): Run | undefined {
    // If the owner holds the lock, the answer may come after its release: an heir would hold it beside who has re-entered.
    if (this.#run?.owner === owner) this.#run.end()
    return this.#run
  }

  /** The lock goes back to Redis, or is lost. */
  endRun(run: Run): void {
    run.end()
    if (this.#run === run) this.#run = undefined
  }
}

/** Whether the run may go on, and the lease is worth to be handed on. */
export function goesOn({ run, deadline, length }: Hold, now: number): boolean {
  const left = deadline - now
  return run !== undefined && run.left(now) > 0 && left >= length / 2 && left <= length
}

/**
 * Checks re-entry of read-write locks against the server's data: the answer to an owner that holds the lock and asks
 * again, the one token of all its holds, and that nobody else holds while a writer does.
 */
import { type LockState, liveHolders, writes } from './lock-state.ts'
import type { Answer } from './witness.ts'

export class Reentries {
  readonly #failed: (invariant: string, what: string) => void
  /** How often an owner re-entered. */
  granted = 0
  /** How often a request was refused because its owner would wait for itself. */
  deadlocks = 0

  constructor(failed: (invariant: string, what: string) => void) {
    this.#failed = failed
  }

  /**
   * Checks the answer to a request. An owner that holds the lock must re-enter at once. If the owner only reads and
   * asks to write, the request must be refused as a deadlock; but a request that was queued before its owner began to
   * read keeps waiting.
   */
  asked({ claim, before, after, deadlock, now }: Answer): void {
    const { id, owner } = claim
    // The request holds already, so this is a repetition.
    if (before.holders.has(id)) return
    // An owner without a name does not re-enter by its own id. Such a request may be repeated after its hold has ended,
    // while a nested hold is still live.
    const theirs = owner === id ? [] : liveHolders(before, now).filter(holder => holder.claim.owner === owner)
    const told = deadlock ? 'deadlock' : after.holders.get(id)?.token
    const queued = before.queue.some(({ claim }) => claim.id === id)
    if (deadlock) this.deadlocks += 1
    if (theirs.length === 0) {
      if (deadlock) this.#failed('re-entry', `${id} is refused as a deadlock, but ${owner} does not hold`)
    } else if (!writes(claim) || theirs.some(holder => writes(holder.claim))) {
      this.granted += 1
      if (!theirs.some(({ token }) => token === told))
        this.#failed('re-entry', `${id} must re-enter, because ${owner} holds; the answer is ${told}`)
    } else if (told !== (queued ? undefined : 'deadlock')) {
      this.#failed('re-entry', `${id} asks to write while ${owner} only reads; the answer is ${told}`)
    }
  }

  /**
   * Checks that present holds agree: while a writer holds, no other owner does (I1); each owner has one token of its
   * own (I2).
   */
  agree(lock: string, state: LockState, now: number): void {
    this.#exclude(lock, state, now)
    this.#share(lock, state, now)
  }

  #share(lock: string, state: LockState, now: number): void {
    const tokens = new Map<string, number>()
    const owners = new Map<number, string>()
    for (const { claim, token } of liveHolders(state, now)) {
      const [known, other] = [tokens.get(claim.owner) ?? token, owners.get(token) ?? claim.owner]
      if (known !== token) this.#failed('I2', `${claim.owner} holds ${lock} with ${known} and with ${token}`)
      if (other !== claim.owner) this.#failed('I2', `${token} of ${lock} is held by ${other} and by ${claim.owner}`)
      tokens.set(claim.owner, token)
      owners.set(token, claim.owner)
    }
  }

  #exclude(lock: string, state: LockState, now: number): void {
    const claims = liveHolders(state, now).map(({ claim }) => claim)
    const writer = claims.find(writes)
    const other = writer && claims.find(({ owner }) => owner !== writer.owner)
    if (other) this.#failed('I1', `${writer.id} writes to ${lock}, which ${other.id} of another owner holds`)
  }
}

/** Whether an owner may re-enter a read-write lock, given what it holds. */
export function mayEnter(state: LockState, owner: string, toWrite: boolean, now: number): boolean {
  const theirs = liveHolders(state, now).filter(({ claim }) => claim.owner === owner)
  return theirs.length > 0 && (!toWrite || theirs.some(({ claim }) => writes(claim)))
}

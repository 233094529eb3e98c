/**
 * Checks re-entry of read-write locks against the server's data. `asked` checks the answer to an owner that holds the
 * lock and asks for it again. `agree` checks that all holds of one owner have the same token, and that no other owner
 * holds the lock while a writer holds it.
 */
import { type Holder, isHeld, isKept, type LockState, liveHolders, writes } from './lock-state.ts'
import type { Answer } from './witness.ts'

export class Reentries {
  readonly #failed: (invariant: string, what: string) => void
  readonly #isReleased: (id: string) => boolean
  /** Whether every answer reaches its client, and in time. */
  readonly #answersArrive: boolean
  /** The calls that were refused, and not as a deadlock. None of them may be refused as a deadlock later. */
  readonly #waiting = new Set<string>()
  /** How often an owner re-entered. */
  granted = 0
  /** How often a request was refused because its owner would wait for itself. */
  deadlocks = 0

  /** `isReleased` tells whether the client of a hold has begun or finished its release. */
  constructor(
    answersArrive: boolean,
    failed: (invariant: string, what: string) => void,
    isReleased: (id: string) => boolean,
  ) {
    this.#answersArrive = answersArrive
    this.#failed = failed
    this.#isReleased = isReleased
  }

  /**
   * Checks the answer to a request whose owner already holds the lock. The owner must re-enter at once, with one
   * exception: if the owner only reads, a request to write must be refused as a deadlock. But if the call was waiting
   * before the owner began to read, it must keep waiting.
   */
  asked({ claim, before, after, waits, deadlock, now }: Answer): void {
    const { id, owner } = claim
    // The request already has a live hold: the server has granted it before, and the client has sent it again. This is
    // not a re-entry.
    if (isHeld(before.holds, id, now)) return
    // If a call names no owner, its own id is its owner. A call nested in it may have this owner too, and the nested
    // hold may outlive the outer hold. If the client then sends the request of the outer call again, the request is not
    // a re-entry, although its owner still holds the lock.
    const theirs = owner === id ? [] : holdersOf(before, owner, now)
    const told = deadlock ? 'deadlock' : after.holders.get(id)?.token
    const queued = before.queue.some(({ claim }) => claim.id === id)
    if (deadlock) this.deadlocks += 1
    if (theirs.length === 0) {
      if (deadlock) this.#failed('re-entry', `${id} is refused as a deadlock, but ${owner} does not hold`)
    } else if (!writes(claim) || theirs.some(holder => writes(holder.claim))) {
      this.granted += 1
      if (!theirs.some(({ token }) => token === told))
        this.#failed('re-entry', `${id} must re-enter, because ${owner} holds; the answer is ${told}`)
    } else if (told !== (queued || waits ? undefined : 'deadlock') || (deadlock && this.#waiting.has(id))) {
      this.#failed('re-entry', `${id} asks to write while ${owner} only reads; the answer is ${told}`)
    }
    if (this.#answersArrive && told === undefined) this.#waiting.add(id)
  }

  /**
   * Checks the present holds. While a writer holds, no other owner may hold (I1). Each owner has one token, which no
   * other owner has (I2).
   */
  agree(lock: string, state: LockState, now: number): void {
    this.#exclude(lock, state, now)
    this.#share(lock, state, now)
  }

  #share(lock: string, state: LockState, now: number): void {
    const tokens = new Map<string, number>()
    const owners = new Map<number, string>()
    for (const { claim, token } of liveHolders(state, now)) {
      const other = owners.get(token) ?? claim.owner
      if (other !== claim.owner) this.#failed('I2', `${token} of ${lock} is held by ${other} and by ${claim.owner}`)
      owners.set(token, claim.owner)
      // A nested hold may outlive the outer hold. If the reply to a heartbeat of the outer call was lost, the client
      // sends the heartbeat again, perhaps after it has released the outer hold. The server then grants the lock to the
      // outer call's id with a new token, beside the nested hold with the old token. The client gives this grant back,
      // and its user never sees the new token. So skip a hold that its client has begun to release.
      if (this.#isReleased(claim.id) || isKept(claim.id)) continue
      const known = tokens.get(claim.owner) ?? token
      if (known !== token) this.#failed('I2', `${claim.owner} holds ${lock} with ${known} and with ${token}`)
      tokens.set(claim.owner, token)
    }
  }

  #exclude(lock: string, state: LockState, now: number): void {
    const claims = liveHolders(state, now).map(({ claim }) => claim)
    const writer = claims.find(writes)
    const other = writer && claims.find(({ owner }) => owner !== writer.owner)
    if (other) this.#failed('I1', `${writer.id} writes to ${lock}, which ${other.id} of another owner holds`)
  }
}

/** Returns the owner's holds, without those that are released and last only because of their `minHold`. */
function holdersOf(state: LockState, owner: string, now: number): Holder[] {
  return liveHolders(state, now).filter(({ claim }) => claim.owner === owner && !isKept(claim.id))
}

/** Whether an owner may re-enter a read-write lock, given what the owner already holds. */
export function mayEnter(state: LockState, owner: string, toWrite: boolean, now: number): boolean {
  const theirs = holdersOf(state, owner, now)
  return theirs.length > 0 && (!toWrite || theirs.some(({ claim }) => writes(claim)))
}

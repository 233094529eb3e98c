/**
 * Re-entry of read-write locks, judged by what the server has: what an owner that holds is to be answered when it asks again, that its holds
 * have one token, and that nobody else's hold is beside a writer's.
 */
import { type LockState, liveHolders, writes } from './lock-state.ts'
import type { Answer } from './witness.ts'

export class Reentries {
  readonly #failed: (invariant: string, what: string) => void
  /** How often an owner that held entered again. */
  granted = 0
  /** How often one was told that it would wait for itself. */
  deadlocks = 0

  constructor(failed: (invariant: string, what: string) => void) {
    this.#failed = failed
  }

  /** An owner that holds enters at once. One that only reads never waits to write; but one that had waited before goes on. */
  asked({ claim, before, after, deadlock, now }: Answer): void {
    const { id, owner } = claim
    // A request that is repeated does not ask anew.
    if (before.holders.has(id)) return
    // Without a name nobody enters anywhere: such a request comes again when its hold is over, and a hold inside of that is not.
    const theirs = owner === id ? [] : liveHolders(before, now).filter(holder => holder.claim.owner === owner)
    const told = deadlock ? 'deadlock' : after.holders.get(id)?.token
    const queued = before.queue.some(({ claim }) => claim.id === id)
    if (deadlock) this.deadlocks += 1
    if (theirs.length === 0) {
      if (deadlock) this.#failed('re-entry', `${id} is told that it waits for itself, and ${owner} does not hold`)
    } else if (!writes(claim) || theirs.some(holder => writes(holder.claim))) {
      this.granted += 1
      if (!theirs.some(({ token }) => token === told))
        this.#failed('re-entry', `${id} of ${owner}, which holds, is answered ${told}`)
    } else if (told !== (queued ? undefined : 'deadlock')) {
      this.#failed('re-entry', `${id} asks to write, ${owner} only reads, and the answer is ${told}`)
    }
  }

  /** What holds together: of one owner wherever somebody writes (I1), and of each owner with one token, which nobody else has (I2). */
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

/** Whether what an owner holds of a read-write lock lets it in again. */
export function mayEnter(state: LockState, owner: string, toWrite: boolean, now: number): boolean {
  const theirs = liveHolders(state, now).filter(({ claim }) => claim.owner === owner)
  return theirs.length > 0 && (!toWrite || theirs.some(({ claim }) => writes(claim)))
}

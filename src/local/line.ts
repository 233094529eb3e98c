/**
 * The line in which the unfair waiters of one key stand, inside this client. Only its head asks Redis, so a release wakes one
 * request a process, not one a waiter (I9). As in local-lock.ts, there is no I/O and no timer here.
 *
 *   1. stand in the line; only its head goes on
 *   2. try
 *   3. refused: hear the unlock channel, and try once more
 *   4. refused: park until a wake-up or the slow timer, then try again
 *
 * A wake-up belongs to the line, not to the head: if the head gives up, the next head uses it.
 *
 * Where several may hold at a time, a grant is a reason for the next one to try, until one is refused. More of them try at a time, the
 * more were granted in a row: readers that a writer has kept waiting are let in after a few round trips, however many they are, and
 * no more are refused than were granted (I9).
 *
 * While a hold of this client may still hand the lock on to the head, nobody has to ask or to listen, because the end of
 * that hold is known here first. That takes a few ms; then the slow timer makes the head ask.
 *
 * Among clients the heads take turns, so a head may have to leave the lock to others for a moment before it tries (turns.ts).
 * Meanwhile it stands here like any other, hears the unlock channel, and has a timer in case it hears nothing (I4). A call
 * that is to end soon is asked for in time to be refused. Where no other client heard a release, the line is `alone` until
 * anything shows another one; then run.ts has another bound for its runs.
 */
import type { Granted, Holder, Refused } from '../kind.ts'
import type { Waiter, WaiterRecord } from './waiter.ts'

/** Where several may hold: the most that try at a time. */
const WIDEST = 128

/** How long a client that takes turns is given for its own, in ms. */
export const TURN = 7

/** Among clients, as wait/turns.ts has it. */
export interface TurnTaking {
  /** For how many ms this client leaves the lock to others. */
  wait(key: string): number
  /** This client has the lock; `free`: it was free when it tried. */
  taken(key: string, free: boolean): void
  /** This client releases the lock now. */
  releasing(key: string): void
  /** It has, and so many clients were told, this one included if it listens. Returns how many of them are others. */
  released(key: string, heard: number): number
  /** Another client has released the lock. */
  freed(key: string, by: string): void
  /** This client has left the lock to others for that long, and tries now. */
  waited(key: string): void
  close(): void
}

/** What the line asks to have done. */
export interface LineEffects {
  /** Whether this client has heard the unlock channel, for the waiters of this line. */
  hearsUnlock(line: Line): boolean
  /** Subscribes to the unlock channel; calls `heard` when that is done, or has taken too long. */
  hearUnlock(line: Line, head: Waiter): void
  /** Leaves the lock to other clients for so many ms, and then calls `tryNow`. */
  leaveTurn(line: Line, ms: number): void
  endTurn(line: Line): void
}

/** The lock to which the line belongs. */
export interface LineOwner {
  readonly key: string
  /** Monotonic ms. */
  now(): number
  /** Sends an attempt of the head, which comes back as `answered`, or where it fails as `heard`. */
  ask(head: WaiterRecord, attempt: 'as-head', reserve: boolean): void
  park(waiter: WaiterRecord): void
  /** The holder's lease ends in so many ms. */
  lookWithin(ttl: number): void
  /** The owner of this name holds the lock. */
  entered(owner: string): void
  /** Who holds, by the last that was heard. */
  learn(holder: Holder | undefined): void
  /** What a request would be told while a hold of this client may hand the lock on; undefined: none may. */
  ours(): Refused | undefined
  /** The refusal with the newest that is known of who holds. */
  upToDate(refusal: Refused): Refused
  /** Nothing of the line is under way. */
  rested(): void
}

const nobody: ReadonlySet<WaiterRecord> = new Set()

export class Line {
  /** The last refusal of the head: why everybody behind it waits, too. */
  refusal: Refused | undefined
  /** Whether no other client heard the last release, and nothing has shown another one since. */
  alone = false
  /** When this client called its release of the lock that is waited for. */
  releasedAt: number | undefined
  /** Whether an attempt of the line is under way. */
  asking = false
  readonly #owner: LineOwner
  readonly #turns: TurnTaking
  readonly #effects: LineEffects
  /** Whether several may hold at a time: then the next one tries as well, until one is refused. */
  readonly #shared: boolean
  /** Made when it is needed: a lock whose waiters are fair needs none. */
  #waiters: Set<WaiterRecord> | undefined
  /** A wake-up that no attempt has used yet. */
  #woken = false
  /** Of those that were asked for together, how many are not answered, and whether one was refused. */
  #unanswered = 0
  #refused = false
  /** How many times in a row all of them were granted. */
  #row = 0
  /** Whether the unlock channel was heard before the attempt under way was sent. */
  #heardBefore = false

  constructor(owner: LineOwner, turns: TurnTaking, effects: LineEffects, shared: boolean) {
    this.#owner = owner
    this.#shared = shared
    this.#turns = turns
    this.#effects = effects
  }

  get key(): string {
    return this.#owner.key
  }

  get waiters(): ReadonlySet<WaiterRecord> {
    return this.#waiters ?? nobody
  }

  get size(): number {
    return this.#waiters?.size ?? 0
  }

  get head(): WaiterRecord | undefined {
    for (const waiter of this.waiters) return waiter
    return undefined
  }

  /** To the end of the line. */
  join(waiter: WaiterRecord): void {
    this.#waiters ??= new Set()
    this.#waiters.add(waiter)
    if (this.head === waiter) {
      if (!this.#behindOurselves()) this.#tryInTurn()
    } else if (this.refusal) {
      // Behind a head that is parked there is nothing to ask: its wake-ups are for all.
      this.refusal = this.#owner.upToDate(this.refusal)
      waiter.refusal ??= this.refusal
      this.#owner.park(waiter)
    }
  }

  leave(waiter: WaiterRecord): void {
    const led = this.#shared && this.head === waiter
    this.#waiters?.delete(waiter)
    const next = led ? this.head : undefined
    // The head may have been refused because it wanted more than was free: that says nothing of one that wants less.
    if (next && next.claim.wants !== waiter.claim.wants) this.tryNow()
  }

  /** The lock may be free: the head tries as soon as it is the turn of this client. */
  wake(): void {
    if (this.size === 0) return
    this.alone = false
    this.#tryInTurn()
  }

  /** This client has released the lock, and so many other clients were told. */
  released(others: number): void {
    if (this.size === 0 || this.#behindOurselves()) return
    this.alone = others === 0
    this.#tryInTurn()
  }

  /** A look at the truth: the head tries. Its refusal says who holds, and so who else may enter. */
  look(): void {
    if (this.size === 0) return
    if (this.releasedAt === undefined || this.#owner.now() - this.releasedAt >= TURN) return this.tryNow()
    // Our own release is on its way, and this request would be the first behind it. The reply says whose turn it is.
    this.#owner.lookWithin(TURN)
  }

  /** The head tries. */
  tryNow(): void {
    this.#effects.endTurn(this)
    this.#woken = true
    if (!this.asking) this.#tryHead()
  }

  /** The head hears the unlock channel, or has waited for that long enough: what it was told before was not heard. */
  heard(): void {
    this.#woken = true
    this.#tryHead()
  }

  /** The head's attempt was answered, and what that means to the head itself is done. */
  answered(head: WaiterRecord, answer: Granted | Refused): void {
    this.#owner.lookWithin(answer.granted ? head.claim.lease : answer.ttl)
    if (!answer.granted) {
      this.alone = false
      this.#share(answer)
    }
    // That this owner was granted the lock may have been said before the channel was heard; then nobody else tells its other waiters.
    const holder = answer.granted ? answer.via === 'reentry' && head.claim.owner : answer.owner
    if (holder) this.#owner.entered(holder)
    this.#refused ||= !answer.granted
    if (this.#othersUnanswered()) return
    // While a grant is confirmed there is nothing to hear: what becomes of it is another wake-up.
    const goesOn = this.size === 0 || this.#heardBefore || head.confirming
    // What is left may be enough for the next one.
    if (this.#shared && !this.#refused) {
      this.#row += 1
      this.heard()
    } else {
      this.#row = 0
      if (goesOn || (answer.granted && this.#behindOurselves())) this.#tryHead()
      else this.#effects.hearUnlock(this, head)
    }
  }

  /** An attempt has failed. The others have waited for the same answer, and the next one that asks does not give them their time again. */
  failed(): void {
    this.#row = 0
    if (!this.#othersUnanswered()) this.heard()
  }

  /** Nobody waits any more, so nothing is remembered. */
  forget(): void {
    this.refusal = undefined
    this.alone = false
    this.releasedAt = undefined
  }

  #tryInTurn(): void {
    const turn = this.#turns.wait(this.key)
    const wait = turn > 0 ? Math.min(turn, this.#patience(this.head)) : 0
    if (wait <= 0) this.tryNow()
    else this.#effects.leaveTurn(this, wait)
  }

  /** The head tries, as long as there are wake-ups to use. Never two attempts of one line at a time. */
  #tryHead(): void {
    const { head } = this
    this.asking = head !== undefined && this.#woken && !head.confirming
    if (!head || !this.asking) return this.#owner.rested()
    this.#woken = false
    // A refusal counts only if the channel was heard before: what was said until then has been missed.
    this.#heardBefore = this.#effects.hearsUnlock(this)
    const wanted = this.refusal !== undefined || this.size > 1 || this.releasedAt !== undefined
    this.#unanswered = 1
    this.#refused = false
    this.#owner.ask(head, 'as-head', wanted && !head.wish.mayReenter)
    if (this.#row > 1) this.#askBehind(head, Math.min(2 ** (this.#row - 1), WIDEST))
  }

  #askBehind(head: WaiterRecord, most: number): void {
    for (const waiter of this.waiters) {
      if (waiter === head || waiter.confirming) continue
      if (this.#unanswered === most) return
      this.#unanswered += 1
      this.#owner.ask(waiter, 'as-head', false)
    }
  }

  /** One of those that were asked for together is answered. */
  #othersUnanswered(): boolean {
    this.#unanswered -= 1
    return this.#unanswered > 0
  }

  /** For how many ms nothing may be asked for this waiter: it has to be refused before it gives up, or joins the queue. */
  #patience(waiter: Waiter | undefined): number {
    if (!waiter || waiter.refusal) return Number.POSITIVE_INFINITY
    const { timeout, fairAfter } = waiter.wish
    const limit = Math.min(timeout ?? Number.POSITIVE_INFINITY, fairAfter ?? Number.POSITIVE_INFINITY)
    return waiter.since + limit / 2 - this.#owner.now()
  }

  /** Where this client may hand the lock on to its own there is nothing to ask, nor to listen for. */
  #behindOurselves(): boolean {
    const refusal = this.#owner.ours()
    if (!refusal) return false
    this.#share(refusal)
    this.#owner.lookWithin(refusal.ttl)
    return true
  }

  /** Whoever stands behind the head waits for the same reason. Those that come later learn it on arrival. */
  #share(refusal: Refused): void {
    const first = this.refusal === undefined
    this.refusal = refusal
    this.#owner.learn(refusal.holder)
    if (!first) return
    for (const waiter of this.waiters) {
      waiter.refusal ??= refusal
      this.#owner.park(waiter)
    }
  }
}

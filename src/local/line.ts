/**
 * The line of the unfair waiters of one key, inside this client. Only its head asks Redis, so a release causes one
 * request per process, not one per waiter (I9). As in local-lock.ts, there is no I/O and no timer here.
 *
 *   1. a waiter stands in the line; only the head goes on
 *   2. the head tries
 *   3. refused: it listens to the unlock channel, and tries once more
 *   4. refused: it parks until a wake-up or the slow timer, then tries again
 *
 * A wake-up belongs to the line, not to the head: if the head gives up, the next head uses it.
 *
 * If several may hold at a time, a grant lets the next waiter try, until one is refused. The more grants there were in
 * a row, the more waiters try at once. So all readers that a writer has kept waiting are let in after a few round
 * trips, however many they are, and no more waiters are refused than were granted (I9).
 *
 * While a hold of this client may still hand the lock on to the head, nobody has to ask or listen, because this client
 * is the first to know when that hold ends. That lasts a few ms (run.ts); then the slow timer makes the head ask.
 *
 * The heads of different clients take turns (wait/turns.ts), so a head may leave the lock to others for a moment before
 * it tries. Meanwhile it stands in the line like any other waiter, its client listens to the unlock channel, and a
 * timer makes it try if no message comes (I4). If its caller gives up soon, it tries early enough to be refused before
 * that. If no other client heard the last release, the line is `alone` until anything shows another client; then run.ts
 * allows a longer run.
 */
import type { Granted, Holder, Refused } from '../kind.ts'
import type { Waiter, WaiterRecord } from './waiter.ts'

/** If several may hold at a time: how many may try at once, at most. */
const WIDEST = 128

/** How long a client that takes turns has for its turn, in ms. */
export const TURN = 7

/** How clients take turns. wait/turns.ts implements it. */
export interface TurnTaking {
  /** How many ms this client leaves the lock to others. */
  wait(key: string): number
  /** This client has the lock. `free`: the lock was free when this client tried. */
  taken(key: string, free: boolean): void
  /** This client releases the lock now. */
  releasing(key: string): void
  /**
   * This client has released the lock, and `heard` clients were told, including this one if it listens. Returns how
   * many of them are other clients.
   */
  released(key: string, heard: number): number
  /** Another client has released the lock. */
  freed(key: string, by: string): void
  /** This client has left the lock to others for as long as `wait` said, and tries now. */
  waited(key: string): void
  close(): void
}

/** What the line asks others to do. */
export interface LineEffects {
  /** Whether the waiters of this line already hear the unlock channel. */
  hearsUnlock(line: Line): boolean
  /** Subscribes to the unlock channel. Calls `heard` when that is done, or takes too long. */
  hearUnlock(line: Line, head: Waiter): void
  /** Leaves the lock to other clients for `ms`, and then calls `tryNow`. */
  leaveTurn(line: Line, ms: number): void
  endTurn(line: Line): void
}

/** The lock to which the line belongs. */
export interface LineOwner {
  readonly key: string
  /** Monotonic ms. */
  now(): number
  /** Sends an attempt of a waiter, and calls `answered` with the answer, or `failed` if there is none. */
  ask(head: WaiterRecord, attempt: 'as-head', reserve: boolean): void
  park(waiter: WaiterRecord): void
  /** The holder's lease ends in `ttl` ms. */
  lookWithin(ttl: number): void
  /** The owner of this name holds the lock, so its waiters may re-enter. */
  entered(owner: string): void
  /** The newest report on who holds the lock. */
  learn(holder: Holder | undefined): void
  /**
   * The refusal that a waiter gets without asking Redis, while a hold of this client may hand the lock on. Undefined:
   * no hold may.
   */
  ours(): Refused | undefined
  /** The refusal, with the newest known holder. */
  upToDate(refusal: Refused): Refused
  /** The line has nothing under way. */
  rested(): void
}

const nobody: ReadonlySet<WaiterRecord> = new Set()

export class Line {
  /** The last refusal of the head. All waiters behind it wait for the same reason. */
  refusal: Refused | undefined
  /** Whether no other client heard the last release, and nothing has shown another client since. */
  alone = false
  /** When this client released the lock that the line waits for. */
  releasedAt: number | undefined
  /** Whether an attempt of the line is under way. */
  asking = false
  readonly #owner: LineOwner
  readonly #turns: TurnTaking
  readonly #effects: LineEffects
  /** Whether several may hold at a time. */
  readonly #shared: boolean
  /** Created when needed: a lock whose waiters are fair needs none. */
  #waiters: Set<WaiterRecord> | undefined
  /** A wake-up that no attempt has used yet. */
  #woken = false
  /** How many of the attempts that were sent together are unanswered. */
  #unanswered = 0
  /** Whether one of them was refused. */
  #refused = false
  /** How many times in a row all attempts sent together were granted. */
  #row = 0
  /** Whether the unlock channel was already heard when the attempt under way was sent. */
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

  /** Adds the waiter at the end of the line. */
  join(waiter: WaiterRecord): void {
    this.#waiters ??= new Set()
    this.#waiters.add(waiter)
    if (this.head === waiter) {
      if (!this.#behindOurselves()) this.#tryInTurn()
    } else if (this.refusal) {
      // If the head is parked, this waiter need not ask: the head's wake-ups are for the whole line.
      this.refusal = this.#owner.upToDate(this.refusal)
      waiter.refusal ??= this.refusal
      this.#owner.park(waiter)
    }
  }

  leave(waiter: WaiterRecord): void {
    const led = this.#shared && this.head === waiter
    this.#waiters?.delete(waiter)
    const next = led ? this.head : undefined
    // The old head may have been refused because it wanted more than was free. A new head that wants less may get it.
    if (next && next.claim.wants !== waiter.claim.wants) this.tryNow()
  }

  /** The lock may be free: the head tries when it is this client's turn. */
  wake(): void {
    if (this.size === 0) return
    this.alone = false
    this.#tryInTurn()
  }

  /** This client has released the lock, and `others` other clients were told. */
  released(others: number): void {
    if (this.size === 0 || this.#behindOurselves()) return
    this.alone = others === 0
    this.#tryInTurn()
  }

  /** Reads the lock's state: the head tries. A refusal says who holds, and so whose waiters may re-enter. */
  look(): void {
    if (this.size === 0) return
    if (this.releasedAt === undefined || this.#owner.now() - this.releasedAt >= TURN) return this.tryNow()
    // This client's own release is under way, and an attempt would be the first request after it, ahead of other
    // clients. The reply to the release says whose turn it is.
    this.#owner.lookWithin(TURN)
  }

  /** The head tries now, whoever's turn it is. */
  tryNow(): void {
    this.#effects.endTurn(this)
    this.#woken = true
    if (!this.asking) this.#tryHead()
  }

  /**
   * The client hears the unlock channel now, or has waited long enough for that. A message before this was not heard,
   * so the head tries again.
   */
  heard(): void {
    this.#woken = true
    this.#tryHead()
  }

  /** The head's attempt was answered, and the head itself has been dealt with. */
  answered(head: WaiterRecord, answer: Granted | Refused): void {
    this.#owner.lookWithin(answer.granted ? head.claim.lease : answer.ttl)
    if (!answer.granted) {
      this.alone = false
      this.#share(answer)
    }
    // The message that this owner was granted the lock may have come before the channel was heard. Then only this
    // answer tells the owner's other waiters.
    const holder = answer.granted ? answer.via === 'reentry' && head.claim.owner : answer.owner
    if (holder) this.#owner.entered(holder)
    this.#refused ||= !answer.granted
    if (this.#othersUnanswered()) return
    // While replicas confirm a grant there is nothing to listen for: the outcome wakes the line.
    const goesOn = this.size === 0 || this.#heardBefore || head.confirming
    // What is left may be enough for the next waiter.
    if (this.#shared && !this.#refused) {
      this.#row += 1
      this.heard()
    } else {
      this.#row = 0
      if (goesOn || (answer.granted && this.#behindOurselves())) this.#tryHead()
      else this.#effects.hearUnlock(this, head)
    }
  }

  /**
   * An attempt has failed, so the next waiter tries. The others have waited for the same answer, so that time counts
   * against their patience too.
   */
  failed(): void {
    this.#row = 0
    if (!this.#othersUnanswered()) this.heard()
  }

  /** Nobody waits any more: forgets what was heard. */
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

  /** The head tries if there is an unused wake-up. Must not be called while an attempt of this line is under way. */
  #tryHead(): void {
    const { head } = this
    this.asking = head !== undefined && this.#woken && !head.confirming
    if (!head || !this.asking) return this.#owner.rested()
    this.#woken = false
    // A refusal is final only if the channel was heard before the attempt: an earlier message would have been missed.
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

  /** One of the attempts that were sent together was answered. Returns whether others are still unanswered. */
  #othersUnanswered(): boolean {
    this.#unanswered -= 1
    return this.#unanswered > 0
  }

  /** How many ms may pass before this waiter tries: it must be refused before it gives up or joins the queue. */
  #patience(waiter: Waiter | undefined): number {
    if (!waiter || waiter.refusal) return Number.POSITIVE_INFINITY
    const { timeout, fairAfter } = waiter.wish
    const limit = Math.min(timeout ?? Number.POSITIVE_INFINITY, fairAfter ?? Number.POSITIVE_INFINITY)
    return waiter.since + limit / 2 - this.#owner.now()
  }

  /** Whether a hold of this client may hand the lock on to the line. Then there is no need to ask or to listen. */
  #behindOurselves(): boolean {
    const refusal = this.#owner.ours()
    if (!refusal) return false
    this.#share(refusal)
    this.#owner.lookWithin(refusal.ttl)
    return true
  }

  /** Waiters behind the head wait for the reason for which it was refused. Later ones learn it when they join. */
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

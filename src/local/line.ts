/**
 * The line of the unfair waiters of one key, inside this client. Only the head of the line, its first waiter, asks
 * Redis. So a release causes one request per process, not one per waiter (I9). Like local-lock.ts, this file has no I/O
 * and no timer.
 *
 *   1. A waiter joins the line. Only the head continues.
 *   2. The head tries to take the lock.
 *   3. If refused, the head listens to the unlock channel, and tries once more.
 *   4. If refused again, the head parks until a wake-up or the slow timer (wait/heartbeat.ts), then tries again.
 *
 * A wake-up belongs to the line, not to the head: if the head gives up, the next head uses the wake-up.
 *
 * In a lock that several owners may hold, each grant lets the next waiter try, until a waiter is refused. The more
 * grants there were in a row, the more waiters try at once. So even thousands of readers that waited for a writer are
 * admitted within a few round trips. In total, Redis refuses no more of these attempts than it grants (I9).
 *
 * While a hold of this client may still hand the lock on to the head, the line sends no attempts and does not listen to
 * the unlock channel, because this client is the first to know when that hold ends. Hand-offs are possible only for a
 * few ms after a grant by Redis (run.ts). After that, the slow timer makes the head ask.
 *
 * The heads of different clients take turns (wait/turns.ts). So a head may leave the lock to other clients for a moment
 * before it tries. Meanwhile the client listens to the unlock channel, and a timer makes the head try if no message
 * comes (I4). If the caller's time-out is near, the head tries earlier, so that the answer arrives before the time-out.
 *
 * If no other client received the message of this client's last release, the line counts as `alone` until there is a
 * sign of another client. While it is `alone`, runs of hand-offs within this client may last longer (run.ts).
 */
import type { Granted, Holder, Refused } from '../kind.ts'
import type { Waiter, WaiterRecord } from './waiter.ts'

/** In a lock that several owners may hold, at most this many attempts are under way at a time. */
const WIDEST = 128

/** How long one client's turn lasts, in ms. */
export const TURN = 7

/** How clients take turns. wait/turns.ts implements it. */
export interface TurnTaking {
  /** Returns for how many ms this client must leave the lock to other clients. */
  wait(key: string): number
  /** Called when this client has been granted the lock. `free`: the lock was free when this client tried. */
  taken(key: string, free: boolean): void
  /** Called when this client is about to release the lock. */
  releasing(key: string): void
  /**
   * Called when this client has released the lock. `heard`: how many clients have received the message that the lock is
   * free, including this client if it listens. Returns how many other clients have received it.
   */
  released(key: string, heard: number): number
  /** Called when the client `by` has released the lock. */
  freed(key: string, by: string): void
  /** Called when this client has waited for as long as `wait` said, and tries now. */
  waited(key: string): void
  close(): void
}

/** Does the I/O and the timing for the line. */
export interface LineEffects {
  /** Returns whether the client's subscription to the unlock channel is active already. */
  hearsUnlock(line: Line): boolean
  /**
   * Subscribes to the unlock channel. Calls `heard` when the subscription is active, or when subscribing takes too
   * long.
   */
  hearUnlock(line: Line, head: Waiter): void
  /** Waits `ms`, so that other clients can try first, and then calls `tryNow`. */
  leaveTurn(line: Line, ms: number): void
  endTurn(line: Line): void
}

/** The lock to which the line belongs. */
export interface LineOwner {
  readonly key: string
  /** Returns the time, in monotonic ms. */
  now(): number
  /** Sends a waiter's attempt. Then calls `answered` with the answer, or `failed` if there is no answer. */
  ask(head: WaiterRecord, attempt: 'as-head', reserve: boolean): void
  park(waiter: WaiterRecord): void
  /** Plans a check of the lock for the end of the holder's lease, in `ttl` ms. */
  lookWithin(ttl: number): void
  /** Called when it is known that this owner holds the lock, so that the owner's waiters may re-enter. */
  entered(owner: string): void
  /** Lets a waiter ask to re-enter, because its owner may hold the lock. */
  reenter(waiter: WaiterRecord): void
  /** Passes on the newest report of who holds the lock. */
  learn(holder: Holder | undefined): void
  /**
   * If a hold of this client may hand the lock on, returns a refusal for the waiters of the line. They then wait for
   * that hold to end, and do not ask Redis. Otherwise returns undefined.
   */
  ours(): Refused | undefined
  /** Returns this refusal with the newest known holder. */
  upToDate(refusal: Refused): Refused
  /** Called when the line no longer has an attempt under way. */
  rested(): void
}

const nobody: ReadonlySet<WaiterRecord> = new Set()

export class Line {
  /** The last refusal of the head, which applies to all waiters of the line. */
  refusal: Refused | undefined
  /**
   * Whether no other client received the message of this client's last release, and there has been no sign of another
   * client since then.
   */
  alone = false
  /**
   * When this client sent its last release of the lock; undefined if it has been granted the lock since then, or if it
   * has no waiters for the lock.
   */
  releasedAt: number | undefined
  /** Whether an attempt of the line is under way. */
  asking = false
  readonly #owner: LineOwner
  readonly #turns: TurnTaking
  readonly #effects: LineEffects
  /** Whether several owners may hold the lock at a time. */
  readonly #shared: boolean
  /** The waiters in the line. The set is created when needed, because a lock with only fair waiters needs none. */
  #waiters: Set<WaiterRecord> | undefined
  /** Whether there is a wake-up that no attempt has used yet. */
  #woken = false
  /** How many attempts of the present round are unanswered. A round is the attempts that were sent together. */
  #unanswered = 0
  /** Whether an attempt was refused in the present round (the attempts that were sent together). */
  #refused = false
  /** The number of consecutive rounds in which all attempts were granted. */
  #row = 0
  /** Whether the subscription to the unlock channel was active before the attempt under way was sent. */
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
      // The head is parked, and its wake-ups are for the whole line. So the new waiter need not ask Redis.
      this.refusal = this.#owner.upToDate(this.refusal)
      waiter.refusal ??= this.refusal
      this.#owner.park(waiter)
    }
  }

  leave(waiter: WaiterRecord): void {
    const led = this.#shared && this.head === waiter
    this.#waiters?.delete(waiter)
    const next = led ? this.head : undefined
    // The old head may have been refused because it wanted more permits than were free. The new head wants a different
    // number of permits, so it may be granted the lock.
    if (next && next.claim.wants !== waiter.claim.wants) this.tryNow()
  }

  /** Called when the lock may be free. Lets the head try when it is this client's turn. */
  wake(): void {
    if (this.size === 0) return
    this.alone = false
    this.#tryInTurn()
  }

  /**
   * Called when this client has released the lock. `others`: how many other clients have received the message about it.
   */
  released(others: number): void {
    if (this.size === 0 || this.#behindOurselves()) return
    this.alone = others === 0
    this.#tryInTurn()
  }

  /**
   * Lets the head try, in order to read the lock's state. If the head is refused, the refusal names the owner that
   * holds the lock. Other waiters of that owner may then re-enter. If several owners may hold the lock, the refusal
   * names only one of them. So each waiter whose owner may hold asks for itself, too.
   */
  look(): void {
    if (this.size === 0) return
    if (this.#shared) {
      for (const waiter of [...this.waiters].slice(1)) if (waiter.wish.mayReenter) this.#owner.reenter(waiter)
    }
    if (this.releasedAt === undefined || this.#owner.now() - this.releasedAt >= TURN) return this.tryNow()
    // This client's own release is under way. An attempt now would reach Redis directly after the release, and so
    // overtake the attempts of other clients. When the release is answered, this client knows whose turn it is.
    this.#owner.lookWithin(TURN)
  }

  /** Lets the head try now, even if it is another client's turn. */
  tryNow(): void {
    this.#effects.endTurn(this)
    this.#woken = true
    if (!this.asking) this.#tryHead()
  }

  /**
   * Called when the subscription to the unlock channel is active, or has taken too long. Earlier messages may have been
   * missed, so the head tries again.
   */
  heard(): void {
    this.#woken = true
    this.#tryHead()
  }

  /** Called when the head's attempt was answered. The head itself knows the answer already; the line learns it here. */
  answered(head: WaiterRecord, answer: Granted | Refused): void {
    this.#owner.lookWithin(answer.granted ? head.claim.lease : answer.ttl)
    if (!answer.granted) {
      this.alone = false
      this.#share(answer)
    }
    // The answer names the owner that holds the lock. This owner may have other waiters in this client, and they may
    // re-enter. The message about the owner's grant may not have reached them, because this client may have subscribed
    // after it.
    const holder = answer.granted ? answer.via === 'reentry' && head.claim.owner : answer.owner
    if (holder) this.#owner.entered(holder)
    this.#refused ||= !answer.granted
    if (this.#othersUnanswered()) return
    // While replicas are asked to confirm the head's grant, the client need not subscribe to the unlock channel,
    // because the line tries again after the replicas' answer.
    const goesOn = this.size === 0 || this.#heardBefore || head.confirming
    // In a lock that several owners may hold, the next waiter may be granted the lock, too.
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
   * Called when an attempt of the line has failed. Lets the next waiter try. All waiters in the line have waited for
   * the answer to the failed attempt. So for wait/outage.ts, Redis was out of reach for each of them during this time.
   */
  failed(): void {
    this.#row = 0
    if (!this.#othersUnanswered()) this.heard()
  }

  /** Forgets what is known about the lock. Called when the line is empty. */
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

  /** Lets the head try if there is an unused wake-up. Must not be called while an attempt of the line is under way. */
  #tryHead(): void {
    const { head } = this
    this.asking = head !== undefined && this.#woken && !head.confirming
    if (!head || !this.asking) return this.#owner.rested()
    this.#woken = false
    // A refused head may park only if the subscription was active before its attempt. Otherwise it may have missed a
    // message.
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

  /** Counts one answer of the present round. Returns whether other attempts of the round are still unanswered. */
  #othersUnanswered(): boolean {
    this.#unanswered -= 1
    return this.#unanswered > 0
  }

  /**
   * Returns for how many ms the waiter may put off its first attempt, so that the answer still arrives before the
   * waiter gives up or joins the queue.
   */
  #patience(waiter: Waiter | undefined): number {
    if (!waiter || waiter.refusal) return Number.POSITIVE_INFINITY
    const { timeout, fairAfter } = waiter.wish
    const limit = Math.min(timeout ?? Number.POSITIVE_INFINITY, fairAfter ?? Number.POSITIVE_INFINITY)
    return waiter.since + limit / 2 - this.#owner.now()
  }

  /** Returns whether a hold of this client may hand the lock on to the line. If so, the line need not ask or listen. */
  #behindOurselves(): boolean {
    const refusal = this.#owner.ours()
    if (!refusal) return false
    this.#share(refusal)
    this.#owner.lookWithin(refusal.ttl)
    return true
  }

  /** Gives this refusal to all waiters of the line. `join` gives it to waiters that join the line later. */
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

/**
 * The unfair waiters of one key in this client, and when the first of them asks: the rounds of its attempts.
 * key-state.ts has the whole story, and says when the methods are called.
 */
import type { Granted, Holder, Refused } from '../kind.ts'
import { List } from '../list.ts'
import type { Attempt, Heard, Port, Silence } from './port.ts'
import { Tenure } from './tenure.ts'
import { nobody, type Waiter } from './waiter.ts'

/** In a lock that several owners may hold, at most this many attempts are under way at a time. */
const WIDEST = 128

export abstract class Line extends Tenure {
  abstract readonly key: string
  /** The subscriptions for this key's waiters (io.ts). */
  heard: Heard | undefined
  /** Since when Redis has not answered the head of the line (limits.ts). */
  silence: Silence | undefined
  protected abstract readonly port: Port
  /** Created when needed, because most keys have either fair or unfair waiters. */
  protected standing: List<Waiter> | undefined
  /** The waiters of the line and of the queue that may re-enter, by their owners. Most keys have none. */
  protected reentrants: Map<string, Set<Waiter>> | undefined
  /** The newest report of who holds the lock, whichever waiter received it; undefined if there was no report. */
  protected holder: Holder | 'released' | undefined
  /** The last refusal of the head, which applies to all waiters of the line. */
  protected refusal: Refused | undefined
  /**
   * When this client sent its last release of the lock; undefined if it has been granted the lock since then, or if it
   * has no waiters for the lock.
   */
  protected releasedAt: number | undefined
  /** Whether an attempt of the line is under way. */
  protected asking = false
  /** Whether there is a wake-up that no attempt has used yet. */
  #woken = false
  /** How many attempts of the present round are unanswered. A round is the attempts that were sent together. */
  #unanswered = 0
  /** Whether an attempt was refused in the present round. */
  #refused = false
  /** The number of consecutive rounds in which all attempts were granted. */
  #row = 0
  /** Whether the subscription to the unlock channel was active before the attempt under way was sent. */
  #heardBefore = false

  /** How many waiters are in the line and in the queue. */
  abstract get waiting(): number
  /** Whether the key has waiters in this client, or an answer for a former waiter is still to come. */
  protected abstract get inUse(): boolean
  protected abstract ask(waiter: Waiter, attempt: Attempt, now: number, reserve?: boolean): void
  protected abstract park(waiter: Waiter): void
  protected abstract rested(): void
  abstract get queue(): List<Waiter>
  abstract end(waiter: Waiter, error: Error | undefined, now: number): void
  abstract lookWithin(ttl: number, now: number): void
  abstract entered(owner: string, now: number): void

  get line(): List<Waiter> {
    return this.standing ?? nobody
  }

  get head(): Waiter | undefined {
    return this.standing?.first
  }

  /** Sends an attempt for this waiter only, outside the line. */
  tryAlone(waiter: Waiter, now: number): void {
    this.ask(waiter, 'alone', now)
  }

  /** Adds the waiter at the end of the line. */
  stand(waiter: Waiter, now: number): void {
    waiter.state = 'standing'
    this.standing ??= new List()
    this.standing.add(waiter)
    this.enlist(waiter)
    if (this.standing.size === 1) {
      if (this.run && this.#behindOurselves(now)) return
      this.wake(now)
    } else if (this.refusal) {
      // The head is parked, and its wake-ups are for the whole line. So the new waiter need not ask Redis.
      this.refusal = this.upToDate(this.refusal)
      waiter.refusal ??= this.refusal
      this.park(waiter)
    }
  }

  /**
   * Called when the head's attempt has failed. Lets the next waiter ask. All waiters in the line have waited for the
   * answer to the failed attempt. So for limits.ts, Redis was out of reach for each of them during this time.
   */
  failed(now: number): void {
    this.#row = 0
    this.#unanswered -= 1
    if (this.#unanswered <= 0) this.listened(now)
  }

  /** Called when the lock may be free. Lets the head ask. */
  wake(now: number): void {
    if (this.line.size === 0) return
    this.#woken = true
    if (!this.asking) this.#tryHead(now)
  }

  /** Called when another client has announced that the lock is free. */
  unlocked(now: number): void {
    if (this.inUse) this.holder = 'released'
    this.wake(now)
  }

  /** Called when this client sends its release. The hand-off time in the statistics begins now. */
  releasing(now: number): void {
    if (this.inUse) this.releasedAt = now
  }

  /** Called when this client has released the lock. */
  released(now: number): void {
    if (this.inUse) this.holder = 'released'
    if (this.line.size === 0) {
      if (!this.own) this.forgetIfIdle()
    } else if (!this.run || !this.#behindOurselves(now)) this.wake(now)
  }

  /** Called when the subscription to the unlock channel is active, or has taken too long: a message may have been missed. */
  listened(now: number): void {
    this.#woken = true
    this.#tryHead(now)
  }

  /** Called when the waiter joins the line or the queue. */
  protected enlist(waiter: Waiter): void {
    const { owner } = waiter.claim
    if (!waiter.wish.mayReenter) return
    this.reentrants ??= new Map()
    this.reentrants.set(owner, (this.reentrants.get(owner) ?? new Set()).add(waiter))
  }

  protected leaveLine(waiter: Waiter, now: number): void {
    const led = this.port.shared && this.head === waiter
    this.standing?.delete(waiter)
    const next = led ? this.head : undefined
    // The old head may have been refused because it wanted more permits than were free. The new head wants a different
    // number of permits, so it may be granted the lock.
    if (next && next.claim.wants !== waiter.claim.wants) this.wake(now)
  }

  /** Lets the head ask if there is an unused wake-up. Must not be called while an attempt of the line is under way. */
  #tryHead(now: number): void {
    const { head } = this
    this.asking = head !== undefined && this.#woken
    if (!head || !this.asking) {
      if (!this.inUse) this.rested()
      return
    }
    this.#woken = false
    // A refused head may park only if the subscription was active before its attempt. Otherwise it may have missed a
    // message.
    this.#heardBefore = this.heard?.unlock === true
    const wanted = this.refusal !== undefined || this.line.size > 1 || this.releasedAt !== undefined
    this.#unanswered = 1
    this.#refused = false
    this.ask(head, 'as-head', now, wanted && !head.wish.mayReenter)
    if (this.#row > 1) this.#askBehind(head, Math.min(2 ** (this.#row - 1), WIDEST), now)
  }

  #askBehind(head: Waiter, most: number, now: number): void {
    for (const waiter of this.line) {
      if (waiter === head) continue
      if (this.#unanswered === most) return
      this.#unanswered += 1
      this.ask(waiter, 'as-head', now)
    }
  }

  /** Called when an attempt of the line was answered. The waiter itself knows the answer already. */
  protected headAnswered(head: Waiter, answer: Granted | Refused, now: number): void {
    if (this.waiting > 0) this.lookWithin(answer.granted ? head.claim.lease : answer.ttl, now)
    if (!answer.granted) this.#share(answer)
    // The answer names the owner that holds the lock. This owner may have other waiters in this client, and they may
    // re-enter. The message about the owner's grant may not have reached them, because this client may have subscribed
    // after it.
    const holder = answer.granted ? answer.via === 'reentry' && head.claim.owner : answer.owner
    if (holder) this.entered(holder, now)
    this.#refused ||= !answer.granted
    this.#unanswered -= 1
    if (this.#unanswered > 0) return
    // In a lock that several owners may hold, the next waiter may be granted the lock, too.
    if (this.port.shared && !this.#refused) {
      this.#row += 1
      return this.listened(now)
    }
    this.#row = 0
    if (this.line.size === 0) {
      this.asking = false
      if (!this.inUse) this.rested()
    } else if (this.#heardBefore || (answer.granted && this.#behindOurselves(now))) this.#tryHead(now)
    else this.port.hear(this, head, now)
  }

  /**
   * Returns whether a hold of this client may still hand the lock on to the line. The waiters of the line then wait for
   * that hold to end.
   */
  #behindOurselves(now: number): boolean {
    const hold = this.oldest
    const ttl = hold?.run?.left(now) ?? 0
    if (!hold || ttl <= 0) return false
    const holder = { label: hold.claim.label, since: hold.since }
    this.#share({ granted: false, sent: now, ttl, position: 0, ticket: '0', holder, clock: 0 })
    this.lookWithin(ttl, now)
    return true
  }

  /** Gives this refusal to all waiters of the line. `stand` gives it to waiters that come later. */
  #share(refusal: Refused): void {
    const first = this.refusal === undefined
    this.refusal = refusal
    this.holder = refusal.holder
    if (!first) return
    // A listener of the event may end the waits of others.
    for (const waiter of [...this.line]) {
      if (!this.line.has(waiter)) continue
      waiter.refusal ??= refusal
      this.park(waiter)
    }
  }

  protected upToDate(refusal: Refused): Refused {
    const holder = this.holder === 'released' ? undefined : (this.holder ?? refusal.holder)
    return holder === refusal.holder ? refusal : { ...refusal, holder }
  }
}

/**
 * The unfair waiters of one key in this client, and when the first of them asks: the rounds of its attempts, and the
 * turns of the clients (others.ts). key-state.ts has the whole story, and says when the methods are called.
 */
import type { Granted, Holder, Refused } from '../kind.ts'
import { type Others, othersAfter } from './others.ts'
import type { Attempt, Heard, Port, Silence } from './port.ts'
import { Tenure } from './tenure.ts'
import { nobody, type Waiter } from './waiter.ts'

/** In a lock that several owners may hold, at most this many attempts are under way at a time. */
const WIDEST = 128
/** How long what is known about the turns of other clients is kept after its last use, in ms. */
const MEMORY = 1_000
const NEVER = Number.POSITIVE_INFINITY

export abstract class Line extends Tenure {
  abstract readonly key: string
  /** The subscriptions for this key's waiters (io.ts). */
  heard: Heard | undefined
  /** Since when Redis has not answered the head of the line (limits.ts). */
  silence: Silence | undefined
  /**
   * Whether no other client received the message of this client's last release, and there has been no sign of another
   * client since then.
   */
  alone = false
  protected abstract readonly port: Port
  /** Created when needed, because most keys have either fair or unfair waiters. */
  protected standing: Set<Waiter> | undefined
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
  /** The other clients' turns; undefined if no other client receives the messages about this client's releases. */
  protected others: Others | undefined
  /** When this client's turn comes, and when it is next checked whether `others` is still in use. */
  protected turnAt = NEVER
  protected sweepAt = NEVER
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
  /** Has `due` called at this time or earlier. */
  protected abstract planFor(at: number): void
  abstract get queue(): ReadonlySet<Waiter>
  abstract end(waiter: Waiter, error: Error | undefined, now: number): void
  abstract lookWithin(ttl: number, now: number): void
  abstract entered(owner: string, now: number): void

  get line(): ReadonlySet<Waiter> {
    return this.standing ?? nobody
  }

  get head(): Waiter | undefined {
    for (const waiter of this.standing ?? nobody) return waiter
    return undefined
  }

  /**
   * Sends an attempt for this waiter only, outside the line. While it is the turn of other clients, the waiter joins
   * the line instead, whose head asks when that turn is over. So a re-entry can take a few ms longer. But if the head
   * has asked early and was refused, nobody may ask for a while, so the waiter asks by itself. A waiter that makes only
   * a single attempt does not join the line.
   */
  tryAlone(waiter: Waiter, now: number): void {
    const headAsks = this.line.size === 0 || this.turnAt < NEVER
    if (waiter.wish.mode !== 'once' && headAsks && this.others && this.others.wait(now) > 0) this.stand(waiter, now)
    else this.ask(waiter, 'alone', now)
  }

  /** Adds the waiter at the end of the line. */
  stand(waiter: Waiter, now: number): void {
    waiter.state = 'standing'
    this.standing ??= new Set()
    this.standing.add(waiter)
    if (this.standing.size === 1) {
      if (this.run && this.#behindOurselves(now)) return
      if (this.others) return this.#tryInTurn(now)
      this.#woken = true
      if (this.asking) return
      this.#tryHead(now)
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

  /** Called when the lock may be free. Lets the head ask when it is this client's turn. */
  wake(now: number): void {
    if (this.line.size === 0) return
    this.alone = false
    this.#tryInTurn(now)
  }

  /** Called when another client, `by`, has announced that the lock is free. */
  unlocked(by: string | undefined, now: number): void {
    if (by !== undefined) this.others?.freed(by, now)
    if (this.inUse) this.holder = 'released'
    this.wake(now)
  }

  /** Called when this client sends its release. The hand-off time in the statistics begins now. */
  releasing(now: number): void {
    this.others?.startRound(now)
    if (this.inUse) this.releasedAt = now
  }

  /**
   * Called when this client has released the lock. `heard`: how many clients received the message that the lock is
   * free, including this client if it listens.
   */
  released(heard: number, now: number): void {
    let listening = heard
    if (this.port.inTurns && (heard > 0 || this.others)) {
      const others = othersAfter(heard, this.port.reached(this.key), this.others, now)
      this.others = this.port.closed ? undefined : others
      listening = others?.listening ?? 0
      if (this.others && this.sweepAt === NEVER) {
        this.sweepAt = now + MEMORY
        this.planFor(this.sweepAt)
      }
    }
    if (this.inUse) this.holder = 'released'
    if (this.line.size === 0) {
      if (!this.own) this.forgetIfIdle()
      return
    }
    if (this.run && this.#behindOurselves(now)) return
    this.alone = listening === 0
    this.#tryInTurn(now)
  }

  /** Called when the subscription to the unlock channel is active, or has taken too long: a message may have been missed. */
  listened(now: number): void {
    this.#woken = true
    this.#tryHead(now)
  }

  protected leaveLine(waiter: Waiter, now: number): void {
    const led = this.port.shared && this.head === waiter
    this.standing?.delete(waiter)
    const next = led ? this.head : undefined
    // The old head may have been refused because it wanted more permits than were free. The new head wants a different
    // number of permits, so it may be granted the lock.
    if (next && next.claim.wants !== waiter.claim.wants) this.tryNow(now)
  }

  #tryInTurn(now: number): void {
    const turn = this.others?.wait(now) ?? 0
    const wait = turn > 0 ? Math.min(turn, this.#mayWait(this.head, now)) : 0
    if (wait <= 0) return this.tryNow(now)
    // If a message comes meanwhile, it says that the lock is free. If none comes, the head asks when its turn comes.
    this.port.listen(this)
    this.turnAt = now + wait
    this.planFor(this.turnAt)
  }

  /** Lets the head ask now, even if it is another client's turn. */
  protected tryNow(now: number): void {
    this.turnAt = NEVER
    this.#woken = true
    if (!this.asking) this.#tryHead(now)
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
    if (!answer.granted) {
      this.alone = false
      this.#share(answer)
    }
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
   * Returns for how many ms the waiter may put off its first attempt, so that the answer still arrives before the
   * waiter gives up or joins the queue.
   */
  #mayWait(waiter: Waiter | undefined, now: number): number {
    if (!waiter || waiter.refusal) return NEVER
    const { timeout, fairAfter } = waiter.wish
    return waiter.since + Math.min(timeout ?? NEVER, fairAfter ?? NEVER) / 2 - now
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
    for (const waiter of this.line) {
      waiter.refusal ??= refusal
      this.park(waiter)
    }
  }

  protected upToDate(refusal: Refused): Refused {
    const holder = this.holder === 'released' ? undefined : (this.holder ?? refusal.holder)
    return holder === refusal.holder ? refusal : { ...refusal, holder }
  }

  /** Called when this client has waited for its turn. */
  protected takeTurn(now: number): void {
    this.others?.waited(now)
    this.tryNow(now)
  }

  /** Forgets the turns of other clients, if they have not been used for a while. */
  protected sweep(now: number): void {
    const used = this.waiting > 0 || now - (this.others?.freedAt ?? 0) < MEMORY
    this.sweepAt = used ? now + MEMORY : NEVER
    if (!used) this.others = undefined
  }
}

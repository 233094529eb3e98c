/**
 * The unfair waiters of each key stand in a line of their own, inside this client; only the head asks Redis.
 *
 *   1. stand in the line; only its head goes on
 *   2. try
 *   3. refused: hear the unlock channel, and try once more
 *   4. refused: park until a wake-up or the slow timer, then try again
 *
 * So a release wakes one request a process, not one a waiter (I9). A wake-up belongs to the room, not to the head: if the
 * head is cancelled, the next head uses it.
 *
 * While a lease of this client may still hand the lock on to the head (lease/passing.ts), nobody has to ask or to listen:
 * the end of that lease is known here first. That is for a few ms; then the slow timer makes the head ask.
 *
 * Among clients they take turns, so the head may have to leave the lock to others for a moment before it tries: turns.ts.
 * Meanwhile it stands here like any other, hears the unlock channel, and has a timer in case it hears nothing (I4). A call
 * that is to end soon is asked for in time to be refused. Where a release was heard by nobody else, the room notes that it is
 * alone, until anything shows otherwise: then lease/tenure.ts has another bound for its runs.
 */
import { awake, type Clock } from '../clock.ts'
import type { Refused } from '../kind.ts'
import type { Asking } from './asking.ts'
import type { Ending } from './ending.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { Outage } from './outage.ts'
import { TURN, type Turns } from './turns.ts'
import type { Room, Waiter } from './waiters.ts'

/** Tokens reserved for hand-offs within the client, by an attempt that finds others behind it: the longest run of them. */
const BLOCK = 1_000

export interface LineListener {
  /** See `WaitListener`. */
  ours(key: string): Refused | undefined
  /** The owner of this name holds the lock. */
  entered(room: Room, owner: string): void
}

export class Line {
  readonly #asking: Asking
  readonly #clock: Clock
  readonly #ending: Ending
  readonly #heartbeat: Heartbeat
  readonly #outage: Outage
  readonly #turns: Turns
  readonly #listener: LineListener

  constructor(
    asking: Asking,
    clock: Clock,
    ending: Ending,
    heartbeat: Heartbeat,
    outage: Outage,
    turns: Turns,
    listener: LineListener,
  ) {
    this.#asking = asking
    this.#clock = clock
    this.#ending = ending
    this.#heartbeat = heartbeat
    this.#outage = outage
    this.#turns = turns
    this.#listener = listener
  }

  /** A waiter has come to the end of the line. */
  join(room: Room, waiter: Waiter): void {
    if (room.head === waiter) {
      if (!this.#parkBehindOurselves(room)) this.unlocked(room)
      return
    }
    // Behind a head that is parked there is nothing to ask: its wake-ups are ours.
    if (!room.refusal) return
    room.refusal = room.upToDate(room.refusal)
    waiter.refusal ??= room.refusal
    this.#asking.park(waiter)
  }

  /** "The lock is free", or may be: the head tries as soon as it is the turn of this client. */
  unlocked(room: Room): void {
    const wait = Math.min(this.#turns.wait(room.key), this.#patience(room.head))
    if (wait <= 0) return this.wake(room)
    this.#asking.hear(room, 'unlock').catch(() => {})
    room.turn?.cancel()
    room.turn = this.#clock.after(wait, () => {
      this.#turns.waited(room.key)
      this.wake(room)
    })
  }

  /** The head tries. */
  wake(room: Room): void {
    room.turn?.cancel()
    room.woken = true
    if (!room.contending) this.#contend(room)
  }

  /** This client has released the lock, and so many others were told. */
  released(room: Room, others: number): void {
    if (this.#parkBehindOurselves(room)) return
    room.alone = others === 0
    this.unlocked(room)
  }

  /** A look at the truth: the head tries. Its refusal says who holds, and so who else may enter. */
  look(room: Room): void {
    const { releasedAt } = room
    if (releasedAt === undefined || this.#clock.now() - releasedAt >= TURN) return this.wake(room)
    // Our own release is on its way, and this request would be the first behind it. The reply says whose turn it is.
    this.#heartbeat.schedule(room, TURN)
  }

  /** The head of the line tries, as long as there are wake-ups to use. Never two attempts of one room at a time. */
  async #contend(room: Room): Promise<void> {
    room.contending = true
    for (let head = room.head; head && room.woken && !head.confirming; head = room.head) {
      room.woken = false
      // A refusal counts only if it is newer than that: what was said before has not been heard.
      const { listening } = room
      const begun = awake(this.#clock).now()
      try {
        const wanted = room.refusal !== undefined || room.line.size > 1 || room.releasedAt !== undefined
        const block = wanted && !head.wish.mayReenter ? BLOCK : undefined
        const answer = await this.#asking.attempt(head, block)
        room.silence = undefined
        this.#heartbeat.schedule(room, answer.granted ? head.claim.lease : answer.ttl)
        if (!answer.granted) {
          room.alone = false
          this.#shareRefusal(room, answer)
          if (answer.owner !== undefined) this.#listener.entered(room, answer.owner)
        }
        if (room.line.size === 0 || listening) continue
        // What becomes of its grant is being found out; then there will be another wake-up.
        if (head.confirming) continue
        if (answer.granted && this.#parkBehindOurselves(room)) continue
        await this.#asking.heed(room, 'unlock', this.#heartbeat.pause)
      } catch (error) {
        this.#ending.end(head, error as Error)
        // The others have waited for the same answer, and the next one that asks does not give them their time again.
        this.#outage.failed(room, begun, error as Error)
      }
      room.woken = true
    }
    room.contending = false
    this.#ending.closeIfEmpty(room)
  }

  /** For how many ms nothing may be asked for this waiter: it has to be refused before it gives up, or joins the queue. */
  #patience(waiter: Waiter | undefined): number {
    if (!waiter || waiter.refusal) return Number.POSITIVE_INFINITY
    const { timeout, fairAfter } = waiter.wish
    const limit = Math.min(timeout ?? Number.POSITIVE_INFINITY, fairAfter ?? Number.POSITIVE_INFINITY)
    return waiter.since + limit / 2 - this.#clock.now()
  }

  /** Where this client may hand the lock on to its own there is nothing to ask, nor to listen for. */
  #parkBehindOurselves(room: Room): boolean {
    const refusal = this.#listener.ours(room.key)
    if (!refusal) return false
    this.#shareRefusal(room, refusal)
    this.#heartbeat.schedule(room, refusal.ttl)
    return true
  }

  /** Who stands behind the head waits for the same reason. Who comes later learns it on arrival. */
  #shareRefusal(room: Room, refusal: Refused): void {
    const first = room.refusal === undefined
    room.refusal = refusal
    room.holder = refusal.holder
    if (!first) return
    for (const waiter of room.line) {
      waiter.refusal ??= refusal
      this.#asking.park(waiter)
    }
  }
}

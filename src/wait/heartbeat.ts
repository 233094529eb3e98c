/**
 * The slow timer of each room: it re-reads the truth, so that a message that was lost costs time, never a lock (I4).
 *
 * It fires when the holder's lease would have lapsed, and a third of `waiterTtl` after the last look at the latest. It
 * never moves to a later time than it has, so a busy room cannot starve its heartbeat.
 */
import type { Clock } from '../clock.ts'
import type { Granted, Kind, Refused } from '../kind.ts'
import type { Ending, Patience } from './ending.ts'
import type { Room, Waiter } from './waiters.ts'

/** A lapsed lease is looked at this many ms after its end: the server counts whole ms. */
const AFTER_LAPSE = 2
/** The longest pause between heartbeats, in ms, however long `waiterTtl` is: the queue's keys live by them. */
const LONGEST = 60_000
const NEVER = Number.POSITIVE_INFINITY

/** What comes of a look. */
export interface Finds {
  /** A grant whose message was lost, or that the look itself has made. */
  granted(waiter: Waiter, grant: Granted): void
  /** The unfair waiters of the room have to look by trying. */
  tryLine(room: Room): void
  /** The owner of this name holds the lock. */
  entered(room: Room, owner: string): void
}

export class Heartbeat {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #ending: Ending
  readonly #outage: number
  readonly #pause: number
  readonly #finds: Finds

  constructor(kind: Kind, clock: Clock, ending: Ending, patience: Patience, finds: Finds) {
    this.#kind = kind
    this.#clock = clock
    this.#ending = ending
    this.#outage = patience.outage
    this.#pause = Math.min(patience.waiterTtl / 3, LONGEST)
    this.#finds = finds
  }

  /** How long a waiter goes without a look at the truth, at most, in ms. */
  get pause(): number {
    return this.#pause
  }

  /** Looks at the truth for everybody in the room. */
  beat(room: Room): void {
    room.timer?.cancel()
    room.due = NEVER
    this.schedule(room, NEVER)
    if (room.tending) room.tendAgain = true
    else if (room.queued.size > 0) this.#tend(room)
    if (room.line.size > 0) this.#finds.tryLine(room)
  }

  /** The holder's lease ends in `ttl` ms: plans the next look. */
  schedule(room: Room, ttl: number): void {
    if (room.empty) return
    const now = this.#clock.now()
    const due = now + Math.min(ttl + AFTER_LAPSE, this.#pause)
    if (due >= room.due) return
    room.due = due
    room.timer?.cancel()
    room.timer = this.#clock.after(due - now, () => this.beat(room))
  }

  async #tend(room: Room): Promise<void> {
    const waiters = [...room.queued].filter(waiter => waiter.ticket !== undefined)
    if (waiters.length === 0) return
    room.tending = true
    try {
      const queued = waiters.map(waiter => ({ claim: waiter.claim, ticket: waiter.ticket as string }))
      const { sent, ttl, holder, owner, clock, waiters: places } = await this.#kind.tend(room.key, queued)
      room.holder = holder
      for (const [i, place] of places.entries()) {
        const waiter = waiters[i] as Waiter
        if (typeof place !== 'number') this.#finds.granted(waiter, place)
        else if (waiter.state !== 'waiting') this.#ending.takeBack(waiter)
        else {
          waiter.seen = sent
          waiter.refusal = { ...(waiter.refusal as Refused), sent, ttl, position: place, holder, owner, clock }
        }
      }
      if (owner !== undefined) this.#finds.entered(room, owner)
      this.schedule(room, ttl)
    } catch (error) {
      // A heartbeat that fails is repeated; a server that refuses them all is as good as out of reach.
      for (const waiter of waiters) {
        const silence = this.#clock.now() - (waiter.seen ?? waiter.since)
        if (silence >= this.#outage) this.#ending.end(waiter, error as Error)
      }
    } finally {
      room.tending = false
      const again = room.tendAgain && room.queued.size > 0
      room.tendAgain = false
      if (again) this.#tend(room)
      else this.#ending.closeIfEmpty(room)
    }
  }
}

/**
 * Among clients, unfair waiters take turns: a client that has released the lock leaves one turn to each other client that heard
 * so, before it tries again. So the client whose own turn is the longest ago tries alone, and the others give it the time to
 * do so, wherever it is. If all tried at once, the one nearest to the server would win nearly always.
 *
 *   A releases: three clients hear "free A"    A leaves turns to B and C, C to B    B tries at once
 *   B releases: "free B"                       B leaves turns to C and A, A to C    C tries at once
 *
 * A client that does not take its turn costs the others some time, after which whoever waits tries. It may be late, and so it
 * is waited for again; but it may also have left, or be one that only listens: a subscription outlives its last waiter by a
 * moment, and a monitor never wants the lock. The bounds below keep what is spent on these small.
 *
 * What is known of a key outlives the waiters of this client, because the next call of a caller that loops comes after the
 * release. It is about others: where nobody else hears a release there is nothing to know. No I/O here; and a mistake costs
 * a turn or a few ms, never the lock, because whoever leaves a turn to others has a timer (I4).
 */
import type { Clock, Timer } from '../clock.ts'
import { TURN, type TurnTaking } from '../local/line.ts'

/** A client that has missed so many of its turns does not take turns any more. */
const MISSED = 3
/** How much of all time may be lost by waiting for clients that missed their turns: beyond `CREDIT` ms, this share. */
const SHARE = 0.2
const CREDIT = 5 * TURN

/** How long others that listen are given, in ms, to show that they want the lock. */
const CHANCE = 3
/** Once none of them did, they are given no other chance for so many ms. */
const PAUSE = 100

/** How long what is known of a key is kept after its last use, where nobody of this client waits, in ms. */
const MEMORY = 1_000

/** What is known of the other clients that listen to one key. A round is from one release of our own to the next. */
class Others {
  /** How many heard our last release. */
  listening = 0
  /** When somebody last released, ourselves included. */
  freedAt: number
  /** Those that take turns, and the round in which each of them last did. */
  readonly #lastTurn = new Map<string, number>()
  #round = 0
  /** How many of them had their turn in this round. */
  #served = 0
  /** One of them had two turns, so whoever is missing does not want them. */
  #roundOver = false
  /** Whether we have the lock, and have not released it since. */
  #ours = false
  /** Whether we have had a turn in this round: what is handed on within the client is no other one. */
  #hadOurs = false
  /** Since the last release we have waited for clients that take turns. */
  #waited = false
  /** ms that were lost by waiting for them, less what is made up for, as of `#lostAt`. */
  #lost = 0
  #lostAt = 0
  /** When those that only listen last had a chance. */
  #chanceAt = Number.NEGATIVE_INFINITY

  constructor(now: number) {
    this.freedAt = now
  }

  /** We release now. This may be said more than once: of each hand-off of a run, too. */
  startRound(now: number): void {
    this.freedAt = now
    this.#waited = false
    this.#roundOver = false
    this.#ours = false
    if (this.#served === 0 && !this.#hadOurs) return
    this.#hadOurs = false
    this.#served = 0
    this.#round += 1
    for (const [client, round] of this.#lastTurn) {
      if (this.#round - round > MISSED) this.#lastTurn.delete(client)
    }
  }

  /** Another client has released. */
  freed(by: string, now: number): void {
    this.freedAt = now
    this.#waited = false
    const lastTurn = this.#lastTurn.get(by)
    if (lastTurn === this.#round) this.#roundOver = true
    else if (lastTurn !== undefined || this.#lastTurn.size < this.listening) {
      this.#lastTurn.set(by, this.#round)
      this.#served += 1
    }
  }

  /** For how many ms we leave the lock to others. */
  wait(now: number): number {
    if (this.#ours) return 0
    const late = this.#lateOnes(now)
    const given = late > 0 ? TURN : this.#mayBeMore(now) ? CHANCE : 0
    return Math.max(0, this.freedAt + given - now)
  }

  /** We have waited for so long. */
  waited(now: number): void {
    if (this.#lateOnes(now) > 0) this.#waited = true
    else this.#chanceAt = now
  }

  /** We have the lock; `free`: it was free when we tried. */
  taken(free: boolean, now: number): void {
    if (free && this.#waited) {
      this.#lost = this.#debt(now) + TURN
      this.#lostAt = now
    }
    this.#waited = false
    this.#ours = true
    if (free) this.#hadOurs = true
  }

  /** How many of those that take turns are to have one before us. */
  #lateOnes(now: number): number {
    if (this.#roundOver || this.#debt(now) >= CREDIT) return 0
    return Math.min(this.#lastTurn.size, this.listening) - this.#served
  }

  /** Whether somebody listens who has not taken turns so far, and is to be given a chance. */
  #mayBeMore(now: number): boolean {
    return !this.#roundOver && this.listening > this.#lastTurn.size && now - this.#chanceAt >= PAUSE
  }

  #debt(now: number): number {
    return Math.max(0, this.#lost - SHARE * (now - this.#lostAt))
  }
}

/** Where several may hold at a time, nobody has to leave the lock to others. */
export const noTurns: TurnTaking = {
  wait: () => 0,
  taken() {},
  releasing() {},
  released: (_, heard) => heard,
  freed() {},
  waited() {},
  close() {},
}

export class Turns implements TurnTaking {
  readonly #clock: Clock
  readonly #hears: (key: string) => boolean
  readonly #awaited: (key: string) => boolean
  readonly #others = new Map<string, Others>()
  #sweep: Timer | undefined
  #closed = false

  /** `hears`: whether this client is told that the lock is free. `awaited`: whether anybody of this client waits for it. */
  constructor(clock: Clock, hears: (key: string) => boolean, awaited: (key: string) => boolean) {
    this.#clock = clock
    this.#hears = hears
    this.#awaited = awaited
  }

  /** This client releases the lock now. Until it knows how many heard so, they are as many as the last time. */
  releasing(key: string): void {
    this.#others.get(key)?.startRound(this.#clock.now())
  }

  /** This client has released the lock, and `heard` clients were told. Returns how many of them are others. */
  released(key: string, heard: number): number {
    const known = this.#others.get(key)
    if (heard === 0 && !known) return 0
    const hears = this.#hears(key)
    if (heard === 0 && hears) {
      // Not even this client was told: the lock was not opened, and so there is nothing to leave to others.
      if (known) known.freedAt = this.#clock.now() - TURN
      return known?.listening ?? 0
    }
    const listening = hears ? heard - 1 : heard
    if (listening === 0 || this.#closed) this.#others.delete(key)
    else {
      const now = this.#clock.now()
      const others = known ?? new Others(now)
      others.listening = listening
      others.freedAt = now
      this.#others.set(key, others)
      this.#armSweep()
    }
    return listening
  }

  /** Another client has released the lock. */
  freed(key: string, by: string): void {
    this.#others.get(key)?.freed(by, this.#clock.now())
  }

  /** For how many ms this client leaves the lock to others. */
  wait(key: string): number {
    return this.#others.get(key)?.wait(this.#clock.now()) ?? 0
  }

  /** This client has left the lock to others for that long, and tries now. */
  waited(key: string): void {
    this.#others.get(key)?.waited(this.#clock.now())
  }

  /** This client has the lock; `free`: it was free when it tried. */
  taken(key: string, free: boolean): void {
    this.#others.get(key)?.taken(free, this.#clock.now())
  }

  close(): void {
    this.#closed = true
    this.#sweep?.cancel()
    this.#others.clear()
  }

  #armSweep(): void {
    this.#sweep ??= this.#clock.after(MEMORY, () => {
      this.#sweep = undefined
      const now = this.#clock.now()
      for (const [key, { freedAt }] of this.#others) {
        if (now - freedAt >= MEMORY && !this.#awaited(key)) this.#others.delete(key)
      }
      if (this.#others.size > 0) this.#armSweep()
    })
  }
}

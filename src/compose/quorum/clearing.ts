/**
 * Takes claims back from the servers, in the background, after their callers have given up, were refused, or were
 * granted the lock by other servers (I7). A failed attempt is repeated until the claim has lapsed on its own. Nothing is
 * taken back from a server that was sent nothing.
 */
import type { Clock } from '../../clock.ts'
import { LockClosedError } from '../../errors.ts'
import { isFinal } from '../../redis/refusals.ts'
import type { Ballot, Seat } from './ballot.ts'
import type { Place } from './member.ts'

/** The pause between two attempts to take a claim back, in ms. */
const PAUSE = 1_000

export class Clearing {
  readonly #places: readonly Place[]
  readonly #clock: Clock
  readonly #waiterTtl: number
  readonly #cleared: (ballot: Ballot) => void
  /**
   * The claims that are being taken back from a server. Each entry is the claim's `Seat` for that server, with the
   * server's number.
   */
  readonly #clearing = new Map<Seat, number>()
  /** The releases under way, each with the number of the server to which it was sent. */
  readonly #releases = new Map<Promise<unknown>, number>()

  /** `cleared` is called when a server has neither a vote nor a queue entry for the claim any more. */
  constructor(places: readonly Place[], clock: Clock, waiterTtl: number, cleared: (ballot: Ballot) => void) {
    this.#places = places
    this.#clock = clock
    this.#waiterTtl = waiterTtl
    this.#cleared = cleared
  }

  /**
   * Takes the claim back from one server. If an attempt fails, it is repeated in the background until the claim has
   * lapsed. But the returned promise settles with the current attempt, so that a caller does not wait long for a server
   * that fails again and again.
   */
  clear(ballot: Ballot, server: number): Promise<void> {
    const seat = ballot.seats[server] as Seat
    seat.drop()
    if (seat.clearing) return seat.trying as Promise<void>
    seat.vote = seat.seen = undefined
    seat.announced = false
    if (!seat.touched) return Promise.resolve()
    const clearing = this.#leave(ballot, server).finally(() => {
      seat.clearing = seat.trying = undefined
      seat.touched = seat.asked > 0
      this.#clearing.delete(seat)
      this.#cleared(ballot)
    })
    clearing.catch(() => {})
    this.#clearing.set(seat, server)
    seat.clearing = clearing
    return seat.trying as Promise<void>
  }

  /**
   * Resolves once all claims are taken back and all releases are answered. Does not wait for servers that are not
   * connected, or that have refused the latest attempt to take a claim back.
   */
  async rest(): Promise<void> {
    for (;;) {
      const under = [...this.#clearing].filter(([{ failed }, server]) => !failed && this.#places[server]?.member.up)
      const releases = [...this.#releases].flatMap(([release, server]) =>
        this.#places[server]?.member.up ? [release] : [],
      )
      if (under.length + releases.length === 0) return
      const clears = under.map(([{ trying, clearing }]) => Promise.all([trying, clearing]))
      await Promise.allSettled([...clears, ...releases])
    }
  }

  /**
   * Makes `rest` wait for a release on one server. The caller of the release waits only for a majority of the servers.
   */
  releasing(server: number, release: Promise<unknown>): void {
    const over = () => void this.#releases.delete(release)
    this.#releases.set(release, server)
    release.then(over, over)
  }

  async #leave(ballot: Ballot, server: number): Promise<void> {
    const seat = ballot.seats[server] as Seat
    const pointless = this.#clock.now() + ballot.claim.lease + this.#waiterTtl
    for (;;) {
      seat.failed = false
      seat.trying = this.#leaveOnce(ballot, server)
      try {
        return await seat.trying
      } catch (error) {
        seat.failed = true
        if (error instanceof LockClosedError || this.#clock.now() >= pointless) throw error
        if (seat.refusing && isFinal((error as Error).cause)) throw error
        await this.#pause()
      }
    }
  }

  async #leaveOnce({ claim, seats }: Ballot, server: number): Promise<void> {
    const seat = seats[server] as Seat
    const { member, kind } = this.#places[server] as Place
    const { epoch } = member
    for (;;) {
      await kind.leave(claim)
      // A heartbeat that is not finished is followed by another one, which may reach the server after `leave`.
      if (seat.asked === 0) break
      await new Promise<void>(resolve => (seat.idle = resolve))
    }
    // A `leave` that was sent over a lost connection may arrive late, and would end a new grant to the same claim. The
    // pause gives this `leave` time to arrive.
    if (member.epoch !== epoch) await this.#pause()
  }

  #pause(): Promise<void> {
    return new Promise(resolve => this.#clock.after(PAUSE, resolve))
  }
}

/**
 * Takes claims back from the servers, in the background, after their callers have given up, were refused, or were
 * granted the lock by other servers (I7). A failed attempt is repeated until the claim has lapsed on its own. An
 * attempt is also repeated if other requests of the claim were unanswered during it, because the server may run those
 * requests after the attempt.
 */
import type { Clock } from '../../clock.ts'
import { LockClosedError } from '../../errors.ts'
import type { Ballot, Seat } from './ballot.ts'
import type { Place } from './place.ts'

/** The pause between attempts, in ms. */
const PAUSE = 1_000

export class Clearing {
  readonly #places: readonly Place[]
  readonly #clock: Clock
  readonly #waiterTtl: number
  readonly #cleared: (ballot: Ballot) => void
  /** The seats whose claim is being taken back, each with the number of its server. */
  readonly #clearing = new Map<Seat, number>()
  /** The releases under way, each with the number of its server. */
  readonly #releases = new Map<Promise<unknown>, number>()

  /** `cleared` is called when a server has neither a vote nor a queue entry for the claim any more. */
  constructor(places: readonly Place[], clock: Clock, waiterTtl: number, cleared: (ballot: Ballot) => void) {
    this.#places = places
    this.#clock = clock
    this.#waiterTtl = waiterTtl
    this.#cleared = cleared
  }

  /**
   * Takes the claim back from one server, with repeated attempts until one succeeds or the claim has lapsed. The
   * returned promise rejects as soon as an attempt fails. Otherwise, if the server refuses, the caller would wait for
   * the whole lease.
   */
  clear(ballot: Ballot, server: number): Promise<void> {
    const seat = ballot.seats[server] as Seat
    if (seat.clearing) return seat.trying as Promise<void>
    seat.vote = seat.seen = undefined
    seat.told = false
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

  /** Resolves when all claims are taken back from the servers that are connected and do not refuse. */
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

  /** Makes `rest` wait for a release on one server. The release's caller waits only until a majority has answered. */
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
        await this.#pause()
      }
    }
  }

  async #leaveOnce({ claim, seats }: Ballot, server: number): Promise<void> {
    const seat = seats[server] as Seat
    const { member, kind } = this.#places[server] as Place
    const { epoch } = member
    for (;;) {
      seat.late = false
      await kind.leave(claim)
      // A request that was unanswered when `leave` was sent may have been sent again and run after `leave`. It may have
      // joined the queue or been granted.
      if (seat.asked === 0 && !seat.late) break
      if (seat.asked > 0) await new Promise<void>(resolve => (seat.idle = resolve))
    }
    // A `leave` that was sent over a lost connection may arrive late, and would end a grant that was made meanwhile.
    if (member.epoch !== epoch) await this.#pause()
  }

  #pause(): Promise<void> {
    return new Promise(resolve => this.#clock.after(PAUSE, resolve))
  }
}

/**
 * What is taken back from the servers behind callers that have given up, lost, or been granted elsewhere (I7). An attempt that fails is
 * repeated until the claim has lapsed by itself; and whatever was unanswered beside it may come behind it, so it is done once more then.
 */
import type { Clock } from '../../clock.ts'
import { LockClosedError } from '../../errors.ts'
import type { Ballot, Seat } from './ballot.ts'
import type { Place } from './place.ts'

/** Between attempts, in ms. */
const PAUSE = 1_000

export class Clearing {
  readonly #places: readonly Place[]
  readonly #clock: Clock
  readonly #waiterTtl: number
  readonly #cleared: (ballot: Ballot) => void
  /** Where something is taken back, and from which server. */
  readonly #clearing = new Map<Seat, number>()
  /** Releases under way, and on which server. */
  readonly #releases = new Map<Promise<unknown>, number>()

  /** `cleared`: told when a server has nothing of a claim any more. */
  constructor(places: readonly Place[], clock: Clock, waiterTtl: number, cleared: (ballot: Ballot) => void) {
    this.#places = places
    this.#clock = clock
    this.#waiterTtl = waiterTtl
    this.#cleared = cleared
  }

  /**
   * Takes it back on one server, repeatedly until that is done or it has lapsed. Rejects as soon as an attempt fails: whatever waits for
   * this would wait for the whole lease where the server refuses.
   */
  clear(ballot: Ballot, server: number): Promise<void> {
    const seat = ballot.seats[server] as Seat
    if (seat.clearing) return seat.trying as Promise<void>
    seat.vote = seat.seen = undefined
    seat.told = false
    if (!seat.touched) {
      this.#cleared(ballot)
      return Promise.resolve()
    }
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

  /** Resolves when all is taken back that can be: from the servers that are there, and do not refuse. */
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

  /** A release that its caller does not wait for, where a majority has answered. */
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
      // What was not answered when that was sent may have been sent again, and come behind: it may have joined the queue, or been granted.
      if (seat.asked === 0 && !seat.late) break
      if (seat.asked > 0) await new Promise<void>(resolve => (seat.idle = resolve))
    }
    // What was sent over a connection that has gone may come late, and would take away what is granted after this.
    if (member.epoch !== epoch) await this.#pause()
  }

  #pause(): Promise<void> {
    return new Promise(resolve => this.#clock.after(PAUSE, resolve))
  }
}

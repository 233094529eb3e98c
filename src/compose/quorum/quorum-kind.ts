/**
 * A mutex that is made of the same mutex on N independent servers. The mutex is held while a majority of the servers
 * has the hold. It has no scripts of its own: each method of `Kind` calls the same method on every server. ballots.ts
 * combines the answers. This file and poll.ts have the calls that wait for an outcome.
 */
import type { Clock } from '../../clock.ts'
import type {
  Claim,
  Granted,
  HoldName,
  Inspection,
  Kind,
  Prolonging,
  Queued,
  Refused,
  Released,
  Renewed,
  Tended,
} from '../../kind.ts'
import type { LockState } from '../../kinds/state.ts'
import { type Outcome, settle } from '../../outcome.ts'
import type { Seat } from './ballot.ts'
import type { Ballots } from './ballots.ts'
import type { Floor } from './floor.ts'
import { Poll } from './poll.ts'
import { QuorumInspection } from './quorum-inspection.ts'
import { Renewals } from './renewals.ts'
import { Round, Tally } from './round.ts'

/**
 * An attempt is repeated if the votes were split between several claims. `attempts`: how many attempts are made. `pause`:
 * the first pause between two attempts, in ms. It is as long as the attempt took, within these limits, because the
 * pauses of several callers have to differ by more than that. Each further pause is twice as long.
 */
const SPLIT = { attempts: 4, pause: { least: 2, most: 50 } }

export class QuorumKind implements Kind<LockState> {
  readonly shared = false
  readonly reentrant = true
  readonly lacks = ['maxWaiters', 'rejectLate'] as const
  readonly longestLease: number
  readonly inspection: Inspection<LockState>
  readonly #ballots: Ballots
  readonly #floor: Floor
  readonly #clock: Clock
  readonly #patience: number
  readonly #renewals: Renewals
  /**
   * Attempts that pause before they ask the servers again. `left` becomes true if the claim is taken back during the
   * pause. The attempt must then not ask again (I7).
   */
  readonly #pausing = new Set<{ readonly id: string; left: boolean }>()

  /** `patience`: for how long a call waits for servers whose votes do not count yet, in ms (`Standing`). */
  constructor(ballots: Ballots, floor: Floor, clock: Clock, patience: number, longestLease: number) {
    this.longestLease = longestLease
    this.#ballots = ballots
    this.#floor = floor
    this.#clock = clock
    this.#patience = patience
    this.#renewals = new Renewals(ballots, clock)
    this.inspection = new QuorumInspection(ballots.places, ballots.majority, clock, patience)
  }

  /** Reserves no tokens for hand-offs within the client: a majority would first have to record the new holder. */
  attempt(claim: Claim, mode: 'try' | 'queue', _: number, _waits: boolean, to: Outcome<Granted | Refused>): void {
    settle(this.#attempt(claim, mode), to)
  }

  async #attempt(claim: Claim, mode: 'try' | 'queue'): Promise<Granted | Refused> {
    if (mode === 'queue') return this.#join(claim)
    for (let attempt = 1; ; attempt++) {
      const begun = this.#clock.now()
      const { answer, split } = await this.#poll(claim, 'try')
      if (answer.granted) return answer
      this.#putBack(claim)
      if (!split) return answer
      const { least, most } = SPLIT.pause
      const first = Math.max(least, Math.min(this.#clock.now() - begun, most))
      const pause = first * 2 ** (attempt - 1) * (0.5 + Math.random())
      // This was the last attempt of this call. A caller that waits for the lock calls again after `ttl` ms.
      if (attempt === SPLIT.attempts) return { ...answer, ttl: Math.max(answer.ttl, 2 * pause) }
      const pausing = { id: claim.id, left: false }
      this.#pausing.add(pausing)
      await new Promise<void>(resolve => this.#clock.after(pause, resolve))
      this.#pausing.delete(pausing)
      if (pausing.left) return answer
    }
  }

  async #join(claim: Claim): Promise<Granted | Refused> {
    const { answer } = await this.#poll(claim, 'queue')
    const ballot = this.#ballots.get(claim.id)
    if (!answer.granted && ballot && !ballot.over) this.#ballots.looks.queued(ballot)
    return answer
  }

  async #poll(claim: Claim, mode: 'try' | 'queue') {
    const ballot = this.#ballots.of(claim)
    // An earlier grant of this claim came too late to be used, so the caller asks again.
    if (ballot.granted && ballot.until <= this.#clock.now()) ballot.granted = undefined
    try {
      return await Poll.ask(this.#ballots, ballot, mode, this.#floor.next, this.#clock, this.#patience)
    } catch (error) {
      this.#putBack(claim)
      throw error
    }
  }

  /**
   * Takes the claim back after a call has ended without a grant, unless the claim is queued or another call still waits
   * for it.
   */
  #putBack({ id }: Claim): void {
    const ballot = this.#ballots.get(id)
    if (ballot && ballot.polls === 0 && !ballot.granted && ballot.ticket === undefined) {
      this.#ballots.end(ballot).catch(() => {})
    }
  }

  async tend(_key: string, waiters: readonly Queued[]): Promise<Tended> {
    return this.#ballots.looks.tendAll(waiters)
  }

  async leave(claim: Claim): Promise<void> {
    await this.giveBack(claim)
  }

  async giveBack({ id }: HoldName): Promise<void> {
    for (const pausing of this.#pausing) if (pausing.id === id) pausing.left = true
    const ballot = this.#ballots.get(id)
    if (ballot) await this.#ballots.end(ballot)
  }

  release(hold: HoldName, _: number | undefined, to: Outcome<Released>): void {
    settle(this.#release(hold), to)
  }

  async #release(hold: HoldName): Promise<Released> {
    const ballot = this.#ballots.get(hold.id)
    if (!ballot?.granted) return { ended: false }
    const used = this.#floor.next
    ballot.over = true
    ballot.granted = ballot.token = undefined
    const { places, members, majority, clearing } = this.#ballots
    const tally = new Tally(places.length, majority)
    const round = new Round(members, majority, this.#clock)
    for (const [i, { kind }] of places.entries()) {
      const seat = ballot.seats[i] as Seat
      const { vote, goneAt } = seat
      const voted = vote !== undefined
      // If this client has no vote of a server, the server may have the hold all the same. The hold is certainly gone
      // only if the server has reported that it is gone.
      if (!voted && goneAt > Number.NEGATIVE_INFINITY) tally.add('gone')
      const release = async () => {
        if (!voted) return clearing.clear(ballot, i)
        seat.releasing = true
        const asked = new Promise<Released>((done, failed) => kind.release(hold, used || undefined, { done, failed }))
        const released = await asked.finally(() => (seat.releasing = false))
        tally.add(released.ended ? 'ended' : 'gone')
        this.#ballots.released(ballot, i)
        for (const { id, grant } of released.successors ?? []) {
          this.#ballots.succeeded(i, { key: hold.key, id }, grant)
        }
      }
      const releasing = release()
      clearing.releasing(i, releasing)
      releasing.then(
        () => round.answered(i, tally.decided),
        error => {
          if (voted) clearing.clear(ballot, i).catch(() => {})
          round.failed(i, error)
        },
      )
    }
    await round.over
    return { ended: tally.ended }
  }

  renew(asked: readonly Prolonging[]): Promise<Renewed[]> {
    return this.#renewals.renew(asked)
  }

  /**
   * When a server grants a re-entry, it also prolongs the owner's first hold. This method raises the deadline of the
   * first hold on each server that has granted the re-entry. It treats each server separately, because the re-entry and
   * the first hold may have different majorities.
   */
  raised(first: HoldName, longer: HoldName): number {
    const [ballot, other] = [this.#ballots.get(first.id), this.#ballots.get(longer.id)]
    if (!ballot || !other) return 0
    for (const [i, seat] of ballot.seats.entries()) {
      const raising = other.seats[i]?.vote
      if (!seat.vote || raising?.via !== 'reentry') continue
      seat.vote = { ...seat.vote, deadline: Math.max(seat.vote.deadline, raising.deadline) }
    }
    return ballot.until
  }

  placeOf(key: string): string {
    return this.#ballots.places.map(({ kind }) => kind.placeOf(key)).join(' ')
  }
}

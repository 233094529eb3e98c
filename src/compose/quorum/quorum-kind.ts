/**
 * A mutex that is made of the same mutex on N independent servers: held while a majority of them agrees. It knows nothing of scripts; what
 * it asks of each server is what waiting and leases ask of it. What comes of that is put together in ballots.ts; the calls that wait for an
 * outcome are here and in poll.ts.
 */
import type { Clock } from '../../clock.ts'
import type {
  Claim,
  FairQueue,
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
import type { Ballots } from './ballots.ts'
import type { Floor } from './floor.ts'
import { noMajority } from './member.ts'
import { Poll } from './poll.ts'
import { QuorumInspection } from './quorum-inspection.ts'
import { Renewals } from './renewals.ts'
import { tendAll } from './tending.ts'

/** An attempt that splits the votes is repeated so often, after a pause that begins with so many ms and doubles. */
const SPLIT = { attempts: 4, pause: 2 }

export class QuorumKind implements Kind<LockState>, FairQueue {
  readonly shared = false
  readonly reentrant = true
  readonly inTurns = true
  readonly queue: FairQueue = this
  /** A lock that is handed on here would have to be recorded by a majority first. */
  readonly handOff = undefined
  readonly confirmation = undefined
  readonly inspection: Inspection<LockState>
  readonly #ballots: Ballots
  readonly #floor: Floor
  readonly #clock: Clock
  readonly #patience: number
  readonly #renewals: Renewals
  /** Attempts that will ask again, unless their claim is taken back until then (I7). */
  readonly #pausing = new Set<{ readonly id: string; left: boolean }>()

  /** `patience`: for how many ms a call rides out that servers do not count. */
  constructor(ballots: Ballots, floor: Floor, clock: Clock, patience: number) {
    this.#ballots = ballots
    this.#floor = floor
    this.#clock = clock
    this.#patience = patience
    this.#renewals = new Renewals(ballots, clock)
    this.inspection = new QuorumInspection(ballots.places, ballots.majority, clock)
  }

  async attempt(claim: Claim): Promise<Granted | Refused> {
    for (let attempt = 1; ; attempt++) {
      const { answer, split } = await this.#poll(claim, 'try')
      if (answer.granted) return answer
      this.#putBack(claim)
      if (!split) return answer
      const pause = SPLIT.pause * 2 ** (attempt - 1) * (0.5 + Math.random())
      // Whoever waits tries again by itself then.
      if (attempt === SPLIT.attempts) return { ...answer, ttl: Math.max(answer.ttl, 2 * pause) }
      const pausing = { id: claim.id, left: false }
      this.#pausing.add(pausing)
      await new Promise<void>(resolve => this.#clock.after(pause, resolve))
      this.#pausing.delete(pausing)
      if (pausing.left) return answer
    }
  }

  async join(claim: Claim): Promise<Granted | Refused> {
    const { answer } = await this.#poll(claim, 'queue')
    const ballot = this.#ballots.get(claim.id)
    if (!answer.granted && ballot && !ballot.over) this.#ballots.queued(ballot)
    return answer
  }

  async #poll(claim: Claim, mode: 'try' | 'queue') {
    const ballot = this.#ballots.of(claim)
    // It asks again because that came too late.
    if (ballot.granted && this.#ballots.election.until(ballot) <= this.#clock.now()) ballot.granted = undefined
    try {
      return await Poll.ask(this.#ballots, ballot, mode, this.#floor.next, this.#clock, this.#patience)
    } catch (error) {
      this.#putBack(claim)
      throw error
    }
  }

  /** A call of the claim has ended without a grant; another one may still wait for it. */
  #putBack({ id }: Claim): void {
    const ballot = this.#ballots.get(id)
    if (ballot && ballot.polls === 0 && !ballot.granted && ballot.ticket === undefined) {
      this.#ballots.end(ballot).catch(() => {})
    }
  }

  async tend(_key: string, waiters: readonly Queued[]): Promise<Tended> {
    return tendAll(this.#ballots, waiters, this.#clock)
  }

  async leave(claim: Claim): Promise<void> {
    await this.giveBack(claim)
  }

  async giveBack({ id }: HoldName): Promise<void> {
    for (const pausing of this.#pausing) if (pausing.id === id) pausing.left = true
    const ballot = this.#ballots.get(id)
    if (ballot) await this.#ballots.end(ballot)
  }

  async release(hold: HoldName): Promise<Released> {
    const ballot = this.#ballots.get(hold.id)
    if (!ballot?.granted) return { ended: false, heard: 0 }
    const used = this.#floor.next
    ballot.over = true
    ballot.granted = ballot.token = undefined
    let [ended, gone, heard] = [0, 0, 0]
    const errors: (Error | undefined)[] = this.#ballots.places.map(() => undefined)
    const parts = this.#ballots.places.map(async ({ kind }, i) => {
      try {
        if (!ballot.seats[i]?.vote) return await this.#ballots.clearing.clear(ballot, i)
        const released = await kind.release(hold, used || undefined)
        if (released.ended) ended += 1
        else gone += 1
        heard = Math.max(heard, released.heard)
        this.#ballots.released(ballot, i)
        for (const { id, grant } of released.successors ?? []) {
          this.#ballots.succeeded(i, { key: hold.key, id }, grant)
        }
      } catch (error) {
        errors[i] = error as Error
        this.#ballots.clearing.clear(ballot, i).catch(() => {})
        throw error
      }
    })
    for (const [i, part] of parts.entries()) this.#ballots.clearing.releasing(i, part)
    await this.#ballots.most(parts).catch(() => {
      throw noMajority(errors)
    })
    const { places, majority } = this.#ballots
    // Where so many had lost it, no majority had it any more.
    return { ended: ended > 0 && gone <= places.length - majority, heard }
  }

  renew(asked: readonly Prolonging[]): Promise<Renewed[]> {
    return this.#renewals.renew(asked)
  }

  /** Each server raises the hold that it has: a majority of the first hold may not be one of the re-entry. */
  raised(first: HoldName, longer: HoldName): number {
    const [ballot, other] = [this.#ballots.get(first.id), this.#ballots.get(longer.id)]
    if (!ballot || !other) return 0
    for (const [i, seat] of ballot.seats.entries()) {
      const raising = other.seats[i]?.vote
      if (!seat.vote || raising?.via !== 'reentry') continue
      seat.vote = { ...seat.vote, deadline: Math.max(seat.vote.deadline, raising.deadline) }
    }
    return this.#ballots.election.until(ballot)
  }

  placeOf(key: string): string {
    return this.#ballots.places.map(({ kind }) => kind.placeOf(key)).join(' ')
  }
}

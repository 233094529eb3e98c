/**
 * A mutex that is made of the same mutex on N independent servers. It is held while a majority of the servers has the
 * hold. It has no scripts of its own: each method of `Kind` asks every server in a round (round.ts), and the ballots
 * (ballots.ts) put the answers together. This file has the calls that wait for an outcome.
 */
import type {
  Claim,
  Granted,
  HeartbeatEntry,
  HeartbeatReply,
  HoldName,
  Inspection,
  Kind,
  KindTraits,
  Refused,
  Released,
  RenewalRequest,
  Renewed,
} from '../../kind.ts'
import type { LockState } from '../../kinds/state.ts'
import { type Outcome, settle } from '../../outcome.ts'
import type { Settings } from '../../settings.ts'
import { type Ballots, tellOutcome, type VoteAnswer } from './ballots.ts'
import type { Floor } from './eligibility.ts'
import { QuorumInspection } from './inspection.ts'
import { type Member, noMajority, reasonOf } from './member.ts'
import { merged, type Question, Round, VoteTally } from './round.ts'
import type { Ballot, Seat } from './seat.ts'
import type { Waiters } from './waiters.ts'

/**
 * An attempt is repeated if the votes were split between several claims. `attempts`: how many attempts are made. `pause`:
 * the first pause between two attempts, in ms. It is as long as the attempt took, within these limits, because the
 * pauses of several callers have to differ by more than that. Each further pause is twice as long.
 */
const SPLIT = { attempts: 4, pause: { least: 2, most: 50 } }
/**
 * How often a renewal asks the servers, at most. It asks again if a token was corrected, if a vote has come meanwhile, or
 * if further servers were asked to join the hold.
 */
const MOST_ROUNDS = 3
/**
 * How long a renewal waits for servers whose answers decide whether a hold is prolonged: this fraction of the time that
 * the hold has left, and at most `most` ms.
 */
const PATIENCE = { fraction: 1 / 4, most: 1_000 }
/** A server that prolongs a hold by some time prolongs it by this fraction of the time at least, less all margins. */
const LEAST = 0.85
/** How long a forced release may take to reach all servers, in ms. */
const TAKING = 500

/** What a renewal asks for one hold. */
interface Asked extends RenewalRequest {
  readonly ballot: Ballot | undefined
  /** How many servers have prolonged the hold in this round. */
  prolonged: number
  /** Whether a server has the hold with another token, which is being replaced. */
  differs: boolean
  /** If a majority has prolonged the hold, it lasts until this time at least, in monotonic ms. */
  readonly least: number
}

export class QuorumKind implements Kind<LockState> {
  readonly traits: KindTraits<LockState>
  readonly inspection: Inspection<LockState>
  readonly #ballots: Ballots
  readonly #waiters: Waiters
  readonly #floor: Floor

  constructor(ballots: Ballots, waiters: Waiters, floor: Floor, settings: Pick<Settings, 'lease' | 'outageTimeout'>) {
    this.#ballots = ballots
    this.#waiters = waiters
    this.#floor = floor
    const lacks = ['maxWaiters', 'rejectLate'] as const
    this.traits = { shared: false, reentrant: true, queues: true, lacks, longestLease: settings.lease }
    this.inspection = new QuorumInspection(ballots, settings.outageTimeout)
  }

  /** Reserves no tokens for hand-offs within the client: a majority would first have to record the new holder. */
  attempt(claim: Claim, mode: 'try' | 'queue', _: number, _waits: boolean, to: Outcome<Granted | Refused>): void {
    settle(mode === 'try' ? this.#try(claim) : this.#join(claim), to)
  }

  async #try(claim: Claim): Promise<Granted | Refused> {
    const { clock } = this.#ballots
    const ballot = this.#ballots.of(claim)
    for (let attempt = 1; ; attempt++) {
      const begun = clock.now()
      const { answer, split } = await this.#attempt(ballot, 'try')
      if (answer.granted) return answer
      const again = split && attempt < SPLIT.attempts
      this.#putBack(ballot, again)
      if (!split) return answer
      const { least, most } = SPLIT.pause
      const first = Math.max(least, Math.min(clock.now() - begun, most))
      const pause = first * 2 ** (attempt - 1) * (0.5 + Math.random())
      // This was the last attempt of this call. A caller that waits for the lock calls again after `ttl` ms.
      if (!again) return { ...answer, ttl: Math.max(answer.ttl, 2 * pause) }
      await new Promise<void>(resolve => clock.after(pause, resolve))
      // The claim was taken back during the pause (I7).
      if (ballot.over) return answer
    }
  }

  async #join(claim: Claim): Promise<Granted | Refused> {
    const ballot = this.#ballots.of(claim)
    const { answer } = await this.#attempt(ballot, 'queue')
    if (!answer.granted && !ballot.over) this.#ballots.changed(ballot)
    return answer
  }

  async #attempt(ballot: Ballot, mode: 'try' | 'queue'): Promise<Attempted> {
    // An earlier grant of this claim came too late to be used, so the caller asks again.
    if (ballot.granted && ballot.until <= this.#ballots.clock.now()) ballot.granted = undefined
    try {
      const waits = ballot.seats.some(({ member }) => !member.counts)
      const attempted = await new Promise<Attempted>((done, failed) => {
        new Attempt(this.#ballots, ballot, mode, this.#floor.next, { done, failed })
      })
      return waits ? await this.#refreshed(ballot, attempted) : attempted
    } catch (error) {
      this.#putBack(ballot)
      throw error
    }
  }

  /** Renews a grant whose first votes are old, because the attempt had to wait until other servers could be asked. */
  async #refreshed({ claim }: Ballot, attempted: Attempted): Promise<Attempted> {
    const { answer } = attempted
    if (!answer.granted || answer.deadline - this.#ballots.clock.now() > claim.lease / 2) return attempted
    const renewing = this.renew([{ hold: claim, token: answer.token, ms: claim.lease }])
    const [until] = await renewing.catch((): Renewed[] => [])
    return typeof until === 'number' ? { ...attempted, answer: { ...answer, deadline: until } } : attempted
  }

  /**
   * Takes the claim back after an attempt has ended without a grant, unless the claim is queued or another call still waits
   * for it. `again`: there will be another attempt.
   */
  #putBack(ballot: Ballot, again = false): void {
    if (ballot.over || ballot.attempts.size > 0 || ballot.granted || ballot.ticket !== undefined) return
    if (again) for (const seat of ballot.seats) this.#ballots.leave(seat).catch(noResult)
    else this.#ballots.end(ballot).catch(noResult)
  }

  tend(_key: string, waiters: readonly HeartbeatEntry[]): Promise<HeartbeatReply> {
    return this.#waiters.tend(waiters)
  }

  async leave(claim: Claim): Promise<void> {
    await this.giveBack(claim)
  }

  async giveBack({ id }: HoldName): Promise<void> {
    const ballot = this.#ballots.get(id)
    if (ballot) await this.#ballots.end(ballot)
  }

  release(hold: HoldName, _: number | undefined, to: Outcome<Released>): void {
    settle(this.#release(hold), to)
  }

  async #release(hold: HoldName): Promise<Released> {
    const ballots = this.#ballots
    const ballot = ballots.get(hold.id)
    if (!ballot?.granted) return { ended: false }
    const used = this.#floor.next || undefined
    ballots.finish(ballot)
    const tally = new VoteTally(ballots)
    const round = new Round(ballots, { verdict: enough => tally.verdict(enough) })
    for (const [i, seat] of ballot.seats.entries()) {
      const { vote, goneAt, member } = seat
      // If this client has no vote of a server, the server may have the hold all the same. The hold is certainly gone
      // only if the server has reported that it is gone.
      if (!vote && goneAt > Number.NEGATIVE_INFINITY) tally.add('gone')
      const release = async () => {
        const asked = new Promise<Released>((done, failed) => member.kind.release(hold, used, { done, failed }))
        const { ended, successors = [] } = await asked
        tally.add(ended ? 'ended' : 'gone')
        for (const { id, grant } of successors) ballots.succeeded(i, { key: hold.key, id }, grant)
      }
      round.expect(i, ballots.leave(seat, vote && release))
    }
    await round.settled()
    return { ended: tally.ended }
  }

  /**
   * Renews the holds on all servers. A hold is prolonged if a majority prolongs it, and gone if no majority has it any
   * more. If a server does not answer, nothing changes: the hold on that server counts until the last deadline that the
   * server has given. Rejects if the outcome is unknown for every hold, because too few servers have answered.
   *
   * A server that does not have the hold is asked to grant it too, with the token that the other servers have. Such a
   * server was away when the lock was granted, or had voted for a claim that has since been taken back. Without these
   * requests, the hold could disappear from one server after the other. It would end although a majority of the servers
   * was up at any time (I8).
   *
   * `rounds`: how often the servers are asked, at most.
   */
  async renew(asked: readonly RenewalRequest[], rounds = MOST_ROUNDS): Promise<Renewed[]> {
    const ballots = this.#ballots
    const { members, majority, clock } = ballots
    const holds: Asked[] = asked.map(each => ({
      ...each,
      ballot: ballots.get(each.hold.id),
      prolonged: 0,
      differs: false,
      least: clock.now() + each.ms * LEAST,
    }))
    // A server may lose the hold after it has prolonged it, as by a forced release. So `prolonged` alone decides nothing.
    const decided = ({ ballot, prolonged, least }: Asked) =>
      !ballot?.granted || (prolonged >= majority && ballot.until >= least) || this.#mayHave(ballot) < majority
    const unanswered = new Set(members.keys())
    const open = (hold: Asked) => !decided(hold) && hold.prolonged + unanswered.size >= majority
    const round = new Round(ballots, {
      verdict: enough => (enough && holds.every(decided) ? 'over' : 'open'),
      least: () => {
        // While a majority is receiving the token, no majority has the hold.
        const ends = holds.filter(open).map(({ ballot, least }) => (ballot as Ballot).until || least)
        const left = Math.max(0, Math.min(...ends) - clock.now())
        return ends.length > 0 ? Math.min(PATIENCE.most, left * PATIENCE.fraction) : undefined
      },
    })
    for (const [i, member] of members.entries()) {
      const at = (hold: Asked) => (hold.ballot?.granted ? hold.ballot.seats[i] : undefined)
      const [free, busy]: [Asked[], Asked[]] = [[], []]
      for (const hold of holds) if (at(hold)?.busy || at(hold)?.vote) (at(hold)?.busy ? busy : free).push(hold)
      const prolonged = this.#prolong(member, free)
      // A vote that is on its way may never come. So the time limit of the round begins without it.
      if (busy.some(hold => !at(hold)?.vote)) prolonged.then(() => round.partly(i), noResult)
      const late = busy.map(
        hold =>
          new Promise<void>((resolve, reject) => {
            at(hold)?.whenFree(error => {
              if (error || !at(hold)?.vote) return error ? reject(error) : resolve()
              this.#prolong(member, [hold]).then(resolve, reject)
            })
          }),
      )
      round.expect(
        i,
        Promise.all([prolonged, ...late]).finally(() => unanswered.delete(i)),
      )
    }
    await round.over
    const undecided = holds.filter(hold => !decided(hold))
    // If a server does not answer, another server may join the hold and prolong it instead.
    const joining = undecided.map(({ ballot }) => this.#joinLate(ballot as Ballot))
    // Correcting a token does not prolong the lease, and neither does joining. So the servers are asked again, as soon as
    // they have answered that. If all servers have answered, a vote has come since the round has ended.
    const answered = round.missing.every(reason => reason === undefined)
    const changed = answered || joining.some(Boolean) || undecided.some(({ differs }) => differs)
    if (undecided.length > 0 && rounds > 1 && changed) return this.renew(asked, rounds - 1)
    const renewed = holds.map((hold): Renewed => {
      const { ballot } = hold
      if (!ballot?.granted) return 'lost'
      const until = decided(hold) ? ballot.until : 'unknown'
      if (until === 0) {
        ballots.endLost(ballot)
        return 'lost'
      }
      this.#joinLate(ballot)
      return until
    })
    if (renewed.every(each => each === 'unknown')) throw noMajority(round.missing)
    return renewed
  }

  /** How many servers have the hold, or are being asked for it or for its token. */
  #mayHave(ballot: Ballot): number {
    const coming = ballot.seats.filter(({ vote, busy, member }) => busy && member.up && !(vote && ballot.isValid(vote)))
    return ballot.votes().length + coming.length
  }

  /**
   * Asks the server to prolong these holds, for which it has voted. If it has one with another token, that token is
   * replaced. It has another one if it has granted the hold again, or if the majority has agreed on a token since it voted.
   */
  async #prolong({ index, kind }: Member, some: readonly Asked[]): Promise<void> {
    if (some.length === 0) return
    const ballots = this.#ballots
    const { clock } = ballots
    const seats = some.map(({ ballot }) => ballot!.seats[index] as Seat)
    const sent = clock.now()
    const asked = some.map(({ hold, ms }, k) => ({ hold, ms, token: seats[k]!.vote?.token ?? 0 }))
    for (const seat of seats) seat.busy = true
    let failure: Error | undefined
    try {
      const renewed = await kind.renew(asked)
      for (const [k, hold] of some.entries()) {
        const seat = seats[k]!
        const { vote } = seat
        const until = renewed[k]
        if (!vote) continue
        if (typeof until === 'number') {
          const grant = { granted: true, token: vote.token, via: vote.via, deadline: until } as const
          ballots.voted(seat, grant, { lease: Math.max(hold.ms, until - clock.now()) })
          if (seat.vote && seat.ballot.isValid(seat.vote)) hold.prolonged += 1
          else hold.differs = true
        } else if (vote.at < sent) {
          seat.lose()
          if (until !== 'replaced') seat.goneAt = clock.now()
          else {
            hold.differs = true
            ballots.ask(seat, 'raise', hold.token)
          }
        }
      }
    } catch (error) {
      failure = error as Error
      throw error
    } finally {
      for (const seat of seats) seat.free(failure)
      for (const { ballot } of seats) ballots.changed(ballot)
    }
  }

  /**
   * Asks the servers that do not have the hold to grant it, too, except servers that have lost it within the last
   * TAKING ms. A forced release takes the hold from one server after the other, and would never finish if servers
   * granted the hold again at once. Returns whether a server was asked.
   */
  #joinLate(ballot: Ballot): boolean {
    const token = ballot.granted?.token
    const before = this.#ballots.clock.now() - TAKING
    let joins = false
    for (const seat of ballot.seats) {
      const { vote, busy, goneAt, member } = seat
      if (token === undefined || vote || busy || !member.up || goneAt > before) continue
      this.#ballots.ask(seat, 'same', token)
      joins = true
    }
    return joins
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
    return this.#ballots.members.map(({ kind }) => kind.placeOf(key)).join(' ')
  }
}

interface Attempted {
  readonly answer: Granted | Refused
  /** Whether the claim was refused although some servers voted for it. Then perhaps no claim has a majority. */
  readonly split: boolean
}

/**
 * One attempt: a round that asks all servers to vote for a claim.
 *
 *   granted    a majority has voted, and agrees on a token (ballots.ts), be it by answers or by messages
 *   refused    no majority can vote for the claim any more, and a majority has answered
 *   an error   so many servers have failed that no majority can answer
 *
 * A server whose votes do not count yet (`Eligibility`) is not asked until they do. Meanwhile the others decide.
 */
class Attempt implements Question {
  readonly #to: Outcome<Attempted>
  readonly #ballots: Ballots
  readonly #ballot: Ballot
  readonly #mode: 'try' | 'queue'
  readonly #round: Round
  readonly #answers: (VoteAnswer | undefined)[]
  readonly #judge = () => this.#round.judge()
  /** How many servers have voted, and how many may still vote, when it was last judged. */
  #voted = 0
  #open = 0

  constructor(ballots: Ballots, ballot: Ballot, mode: 'try' | 'queue', floor: number, to: Outcome<Attempted>) {
    this.#to = to
    this.#ballots = ballots
    this.#ballot = ballot
    this.#mode = mode
    this.#answers = ballot.seats.map(() => undefined)
    this.#round = new Round(ballots, this)
    ballot.attempts.add(this.#judge)
    for (const [i, seat] of ballot.seats.entries()) {
      ballots.ask(seat, mode, floor, answer => {
        this.#answers[i] = answer
      })
    }
  }

  count() {
    const now = this.#ballots.clock.now()
    let [voted, open, answered, failed] = [0, 0, 0, 0]
    for (const [i, seat] of this.#ballot.seats.entries()) {
      const { vote, busy, member } = seat
      const answer = this.#answers[i]
      // A server that has voted may be asked to change the token of its vote.
      const awaited = busy ? vote || !answer : !vote && !answer
      if (awaited && member.up && !this.#round.late && !member.keeps(seat)) open += 1
      if (!awaited && vote && vote.deadline > now && !member.repeats) voted += 1
      if (awaited ? vote : vote || !(answer instanceof Error)) answered += 1
      else if (!awaited) failed += 1
    }
    this.#voted = voted
    this.#open = open
    return { answered, failed, open }
  }

  verdict(enough: boolean): 'over' | 'open' | 'waits' {
    const { majority } = this.#ballots
    if (this.#ballot.granted || this.#ballot.over) return 'over'
    // A majority has voted, but the claim is not granted: the servers have to agree.
    if (this.#voted >= majority) return 'waits'
    return enough && this.#voted + this.#open < majority ? 'over' : 'open'
  }

  /** Called by the round when it is over. */
  ended(enough: boolean): void {
    const ballot = this.#ballot
    const { majority, members } = this.#ballots
    ballot.attempts.delete(this.#judge)
    if (ballot.granted) {
      ballot.reported = true
      return this.#to.done({ answer: ballot.granted, split: false })
    }
    const refusals = this.#answers.filter((answer): answer is Refused => !!answer && 'sent' in answer)
    // If the caller has given up, other callers of this client rely on a refusal, so there is none without a majority.
    if (ballot.over ? refusals.length < majority : !enough) return this.#fail()
    const answer = merged(refusals, members.length - majority, this.#round.begun)
    if (ballot.over) return this.#to.done({ answer, split: false })
    // The ticket has to be set before this attempt ends. Other calls may wait for the same claim, and end at the same
    // moment. The last of them would take the claim back from the servers if the claim had no ticket
    // (`QuorumKind.#putBack`).
    if (this.#mode === 'queue')
      ballot.ticket ??= String(Math.max(0, ...ballot.seats.flatMap(({ ticket }) => ticket ?? [])))
    const split = this.#voted > 0
    tellOutcome(ballot.claim, split ? 'split' : 'refused')
    this.#to.done({ answer: { ...answer, ticket: ballot.ticket ?? answer.ticket }, split })
  }

  #fail(): void {
    const { members } = this.#ballots
    const reasons = members.map((member, i) => {
      const answer = this.#answers[i]
      return answer instanceof Error ? answer : answer ? undefined : reasonOf(member)
    })
    tellOutcome(this.#ballot.claim, 'failed')
    this.#to.failed(noMajority(reasons))
  }
}

const noResult = () => {}

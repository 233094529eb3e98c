/**
 * Inspects a lock on all servers of a quorum, and merges their answers. A holder or waiter that only a minority knows
 * is not shown, because it is just arriving or leaving.
 */
import type { Inspection } from '../../kind.ts'
import { firstOf, type HolderState, type LockState, type WaiterState } from '../../kinds/state.ts'
import type { Ballots } from './ballots.ts'
import { type Member, reasonOf } from './member.ts'
import { type Question, Round, untilMajority, VoteTally } from './round.ts'

/**
 * A forced release waits for slow servers for at least this many ms. So does an inspection, if the answers so far do
 * not show whether the lock is held.
 */
const SLOW = 1_000
/** The largest number of times that a forced release looks up the holder. */
const ATTEMPTS = 5

export class QuorumInspection implements Inspection<LockState> {
  readonly #ballots: Ballots
  readonly #majority: number
  readonly #patience: number

  /** `patience`: a forced release looks the holder up again only in the first half of this time, in ms. */
  constructor(ballots: Ballots, patience: number) {
    this.#ballots = ballots
    this.#majority = ballots.majority
    this.#patience = patience
  }

  async inspect(key: string): Promise<LockState> {
    return this.#merged(key, await this.#ask(({ kind }) => kind.inspection.inspect(key), { least: this.#unclear }))
  }

  async isLocked(key: string): Promise<boolean> {
    return (await this.inspect(key)).locked
  }

  async find(key: string): Promise<LockState | undefined> {
    const free = this.#merged(key, [])
    const states = await this.#ask(async ({ kind }) => (await kind.inspection.find(key)) ?? free, {
      least: this.#unclear,
    })
    const state = this.#merged(key, states)
    return state.locked || state.waiters.length > 0 ? state : undefined
  }

  /**
   * Looks up the holder first. Each server is then asked to take the lock from this holder only. Without this
   * condition, a request that reaches a slow server late could take the lock from a later holder, which may need that
   * server for its majority (I5). If the holder releases the lock before the requests arrive, they take nothing, and
   * the next holder is looked up.
   *
   * If no holder has a majority, votes of clients that have died may block the lock, or the holder has it on a server
   * that does not answer. Then each other server is asked to take the lock from the holder that this server itself has
   * reported. `VoteTally.ended` defines the result.
   *
   * The holder may learn of its loss from the first servers, and give up its other votes before the requests for them
   * arrive. So a server that named the holder counts as one that had the hold, whether or not the request ended it there.
   * Of several forced releases that cross, each may end the hold on some servers, and then each of them resolves to true.
   */
  async forceRelease(key: string, only?: string): Promise<boolean> {
    const { clock } = this.#ballots
    const begun = clock.now()
    for (let attempt = 1; ; attempt++) {
      const states = await this.#ask(({ kind }) => kind.inspection.inspect(key), { least: () => SLOW })
      const [most] = this.#merged(key, states).holders
      const holder = most ?? states.flatMap(state => state?.holders ?? []).find(({ id }) => id === only)
      if (only !== undefined && holder?.id !== only) return false
      const names = states.map(state => nameOn(state, holder))
      if (names.every(name => name === undefined)) return false
      const tally = new VoteTally(this.#ballots)
      const named = states.map(state => state?.holders.some(({ owner }) => owner === holder?.owner))
      /** Whether a server that named the holder has not answered, and whether the hold was gone on another one. */
      const silent = new Set(named.flatMap((has, i) => (has ? [i] : [])))
      let gone = false
      await this.#ask(
        async (member, i) => {
          const name = names[i]
          // A server that has not answered may have the hold.
          if (name === undefined && !states[i]) throw reasonOf(member)
          const ended = name !== undefined && (await member.kind.inspection.forceRelease(key, name))
          silent.delete(i)
          if (ended) tally.add('ended')
          else if (named[i]) gone = true
          else tally.add('gone')
        },
        { least: () => SLOW, verdict: enough => tally.verdict(enough), late: true },
      )
      // A silent server may have ended the hold, and have told its client, which then left the others.
      if (gone && silent.size > 0) tally.add('ended')
      const late = clock.now() - begun > this.#patience / 2
      if (tally.ended || !holder || attempt === ATTEMPTS || late) return tally.ended
    }
  }

  /**
   * Asks all servers, and resolves to their answers, one for each server. By default, the round waits for all servers that
   * are connected. `late`: whether a server that cannot be reached is asked as soon as it comes back, even if the others
   * have decided by then.
   */
  async #ask<T>(
    ask: (member: Member, server: number) => Promise<T>,
    how: {
      least: (answers: readonly (T | undefined)[]) => number | undefined
      verdict?: Question['verdict']
      late?: boolean
    },
  ): Promise<readonly (T | undefined)[]> {
    const { members } = this.#ballots
    const answers = members.map((): T | undefined => undefined)
    let answered = 0
    const all = (enough: boolean) => (enough && answered >= members.filter(({ up }) => up).length ? 'over' : 'open')
    const round = new Round(this.#ballots, { verdict: how.verdict ?? all, least: () => how.least(answers) })
    for (const [i, member] of members.entries()) {
      const asking = async () => {
        answers[i] = await ask(member, i)
        answered += 1
      }
      if (how.late) round.expect(i, asking())
      else round.ask(i, 'answer', asking)
    }
    await round.settled()
    return [...answers]
  }

  /** Returns SLOW if neither a holder nor a free lock has been reported by a majority. */
  readonly #unclear = (answers: readonly (LockState | undefined)[]): number | undefined => {
    const states = answers.filter(state => state !== undefined)
    const free = states.filter(({ locked }) => !locked).length >= this.#majority
    return free || this.#merged('', states).locked ? undefined : SLOW
  }

  #merged(key: string, byServer: readonly (LockState | undefined)[]): LockState {
    const states = byServer.filter(state => state !== undefined)
    const most = <T extends { readonly id: string }>(all: readonly T[]) => {
      const byId = new Map<string, T[]>()
      for (const one of all) byId.set(one.id, [...(byId.get(one.id) ?? []), one])
      return [...byId.values()].filter(same => same.length >= this.#majority)
    }
    const holders = most(states.flatMap(state => state.holders)).map(same => this.#holder(same))
    const waiters = most(states.flatMap(state => state.waiters)).map(waiterOf)
    const held = states.filter(state => state.holders.some(({ id }) => id === holders[0]?.id))
    const counts = held.map(({ holds }) => holds)
    return {
      key,
      kind: 'mutex',
      ...firstOf(holders),
      holds: untilMajority(counts, this.#majority),
      holders,
      waiters: waiters
        .sort((a, b) => a.position - b.position || (a.id < b.id ? -1 : 1))
        .map((waiter, i) => ({ ...waiter, position: i + 1 })),
    }
  }

  #holder(same: readonly HolderState[]): HolderState {
    const common = (values: readonly number[]) => {
      const found = values.find(value => values.filter(other => other === value).length >= this.#majority)
      return found ?? Math.max(...values)
    }
    return {
      ...same[0]!,
      fencingToken: common(same.map(({ fencingToken }) => fencingToken)),
      heldFor: Math.max(...same.map(({ heldFor }) => heldFor)),
      ttl: untilMajority(
        same.map(({ ttl }) => ttl),
        this.#majority,
      ),
    }
  }
}

/**
 * Returns the id under which a server has recorded the holder. If an owner has several holds, each server records the
 * owner under the id of the hold that reached this server first. So the id may be a different one on each server. If
 * `holder` is undefined, returns the id of the holder that the server itself has reported.
 */
function nameOn(state: LockState | undefined, holder: HolderState | undefined): string | undefined {
  if (!holder) return state?.holders[0]?.id
  return state?.holders.find(({ owner }) => owner === holder.owner)?.id ?? holder.id
}

function waiterOf(same: readonly WaiterState[]): WaiterState {
  return {
    ...same[0]!,
    position: same.reduce((sum, { position }) => sum + position, 0) / same.length,
    waited: Math.max(...same.map(({ waited }) => waited)),
    expiresIn: Math.max(...same.map(({ expiresIn }) => expiresIn)),
  }
}

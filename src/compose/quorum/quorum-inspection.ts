/**
 * Inspects a lock on all servers of a quorum, and merges their answers. A holder or waiter that is known only to a
 * minority is not shown: it is about to come or go.
 */
import type { Clock } from '../../clock.ts'
import type { Inspection } from '../../kind.ts'
import type { HolderState, LockState, WaiterState } from '../../kinds/state.ts'
import { untilMajority } from './ballot.ts'
import type { Place } from './place.ts'
import { Round } from './round.ts'

/** How long a forced release waits at least for slow servers, in ms. */
const SLOW = 1_000

export class QuorumInspection implements Inspection<LockState> {
  readonly #places: readonly Place[]
  readonly #majority: number
  readonly #clock: Clock

  constructor(places: readonly Place[], majority: number, clock: Clock) {
    this.#places = places
    this.#majority = majority
    this.#clock = clock
  }

  async inspect(key: string): Promise<LockState> {
    return this.#merged(key, await this.#ask(({ kind }) => kind.inspection.inspect(key)))
  }

  async isLocked(key: string): Promise<boolean> {
    return (await this.inspect(key)).locked
  }

  async find(key: string): Promise<LockState | undefined> {
    const states = await this.#ask(({ kind }) => kind.inspection.find(key))
    const state = this.#merged(
      key,
      states.filter(found => found !== undefined),
    )
    return state.locked || state.waiters.length > 0 ? state : undefined
  }

  /**
   * Resolves to true if a server has taken the lock from a holder, and a majority may have done so: those that have
   * answered so, and all that have not answered.
   */
  async forceRelease(key: string, only?: string): Promise<boolean> {
    const { length } = this.#places
    const mayBe = (answers: readonly boolean[]) => {
      const taken = answers.filter(Boolean).length
      return taken > 0 && taken + length - answers.length >= this.#majority
    }
    // The missing answers are worth waiting for only if the result depends on them.
    const decided = (answers: readonly boolean[]) => answers.length === length || !mayBe(answers)
    return mayBe(await this.#ask(({ kind }) => kind.inspection.forceRelease(key, only), decided, SLOW))
  }

  /**
   * Asks all servers. Resolves to the answers of a majority, and to further answers until `decided` returns true.
   * `least`: for how many ms at least it waits for the further answers.
   */
  async #ask<T>(
    ask: (place: Place) => Promise<T>,
    decided = (answers: readonly T[]) => answers.length >= this.#places.filter(({ member }) => member.up).length,
    least?: number,
  ): Promise<T[]> {
    const answers: T[] = []
    const members = this.#places.map(({ member }) => member)
    const round = new Round(members, this.#majority, this.#clock, least)
    for (const [i, place] of this.#places.entries()) {
      ask(place).then(
        answer => {
          answers.push(answer)
          round.answered(i, decided(answers))
        },
        error => round.failed(i, error),
      )
    }
    await round.over
    return answers
  }

  #merged(key: string, states: readonly LockState[]): LockState {
    const most = <T extends { readonly id: string }>(all: readonly T[]) => {
      const byId = new Map<string, T[]>()
      for (const one of all) byId.set(one.id, [...(byId.get(one.id) ?? []), one])
      return [...byId.values()].filter(same => same.length >= this.#majority)
    }
    const holders = most(states.flatMap(state => state.holders)).map(same => this.#holder(same))
    const waiters = most(states.flatMap(state => state.waiters)).map(waiterOf)
    const [first] = holders
    const held = states.filter(state => state.holders.some(({ id }) => id === first?.id))
    const holder = first && {
      owner: first.owner,
      label: first.label,
      fencingToken: first.fencingToken,
      ttl: first.ttl,
    }
    return {
      key,
      kind: 'mutex',
      locked: first !== undefined,
      ...holder,
      holds: first
        ? untilMajority(
            held.map(({ holds }) => holds),
            this.#majority,
          )
        : 0,
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

function waiterOf(same: readonly WaiterState[]): WaiterState {
  return {
    ...same[0]!,
    position: same.reduce((sum, { position }) => sum + position, 0) / same.length,
    waited: Math.max(...same.map(({ waited }) => waited)),
    expiresIn: Math.max(...same.map(({ expiresIn }) => expiresIn)),
  }
}

/**
 * The groups of a semaphore in memory: what each has had, and whose turn is next. This is start-time fair queuing, as
 * lua/permits/semaphore/groups/settle.lua explains it. The calls without a group are one more group, ''.
 */
import type { Turns as Order, Share } from '../kind.ts'
import { type ClaimedGroup, NO_LIMIT } from '../kinds/claim.ts'

/** What a call asks of its group. */
export interface Called {
  readonly permits: number
  readonly group: ClaimedGroup | undefined
}

/** What decides whose turn is next, apart from the calls. */
export type Tags = Omit<Order, 'asked'>

interface Account extends Share {
  /** The permits of the group's holds; of '', not counted. */
  taken: number
  finish: number
  weight: number
  /** The limit in the newest call. */
  limit: number | undefined
}

/**
 * So many groups without holds and waiters are remembered, those that were called last. A group that is forgotten
 * although it was ahead of its share gains little, because so many other groups were called since then.
 */
const MOST_IDLE = 1_000

const nameOf = ({ group }: Called) => group?.name ?? ''

export class Turns {
  /** The start tag of the last grant. */
  #virtual = 0
  /** The group that was called last is the last one. Empty while no call has a group. */
  readonly #accounts = new Map<string, Account>()

  /** Whether something is known of a group. If not, the order of tickets decides. */
  get grouped(): boolean {
    return this.#accounts.size > 0
  }

  get tags(): Tags {
    return { virtual: this.#virtual, shares: this.#accounts }
  }

  /** Returns what earlier calls have said about the group, as `Traits.differs` reads it. */
  said(call: Called): string {
    const account = call.group && this.#accounts.get(nameOf(call))
    return account ? `;${account.limit ?? NO_LIMIT};${account.weight}` : ''
  }

  /** Notes limit and weight of a call. `newest`: they replace those of earlier calls. */
  note(call: Called, newest: boolean): void {
    const { group } = call
    if (!group) return
    const replaces = newest || !this.#accounts.has(group.name)
    const account = this.#accountOf(call)
    if (!replaces) return
    account.limit = group.limit
    account.weight = group.weight ?? account.weight
  }

  granted(call: Called): void {
    if (!call.group && !this.grouped) return
    const account = this.#accountOf(call)
    this.#virtual = Math.max(this.#virtual, account.finish)
    account.finish = this.#virtual + call.permits / account.weight
    if (call.group) account.taken += call.permits
  }

  ended(call: Called): void {
    if (call.group) this.#accountOf(call).taken -= call.permits
  }

  isFull(call: Called): boolean {
    const taken = this.#accounts.get(nameOf(call))?.taken ?? 0
    return call.group?.limit !== undefined && taken + call.permits > call.group.limit
  }

  /** Whether a waiter is of the same group as the call. */
  isMate(call: Called): (waiter: { readonly asked: Called }) => boolean {
    return ({ asked }) => nameOf(asked) === nameOf(call)
  }

  /**
   * Returns the first waiter of the group whose turn is next. Undefined: nobody waits, except for full groups. `queue`:
   * in the order of tickets. First waiters that are dead are removed from it.
   */
  next<W extends { readonly asked: Called }>(queue: W[], isAlive: (waiter: W) => boolean): W | undefined {
    const seen = new Set<string>()
    let next: W | undefined
    let least = Number.POSITIVE_INFINITY
    for (let i = 0; i < queue.length && (i === 0 || this.grouped); ) {
      const waiter = queue[i] as W
      const name = nameOf(waiter.asked)
      if (!seen.has(name) && !isAlive(waiter)) {
        queue.splice(i, 1)
        continue
      }
      const start = Math.max(this.#virtual, this.#accounts.get(name)?.finish ?? 0)
      if (!seen.has(name) && start < least && !this.isFull(waiter.asked)) {
        next = waiter
        least = start
      }
      seen.add(name)
      i++
    }
    return next
  }

  /**
   * Forgets groups without holds and waiters, except those that are ahead of their share, or have a weight. `busy`:
   * whether anybody holds or waits. If not, no group is ahead of another.
   */
  forget(queue: readonly { readonly asked: Called }[], busy: boolean): void {
    if (!this.grouped) return
    if (!busy) for (const { finish } of this.#accounts.values()) this.#virtual = Math.max(this.#virtual, finish)
    const waiting = new Set(queue.map(({ asked }) => nameOf(asked)))
    const idle: string[] = []
    let matters = false
    for (const [name, { taken, finish, weight }] of this.#accounts) {
      if (name === '') continue
      const used = taken > 0 || waiting.has(name)
      const ahead = finish > this.#virtual
      matters ||= used || ahead
      if (!used && (ahead || weight !== 1)) idle.push(name)
      else if (!used) this.#accounts.delete(name)
    }
    for (const name of idle.slice(0, -MOST_IDLE)) this.#accounts.delete(name)
    if (!matters) this.#accounts.delete('')
  }

  #accountOf(call: Called): Account {
    const name = nameOf(call)
    const account = this.#accounts.get(name) ?? { taken: 0, finish: 0, weight: 1, limit: call.group?.limit }
    this.#accounts.delete(name)
    this.#accounts.set(name, account)
    return account
  }
}

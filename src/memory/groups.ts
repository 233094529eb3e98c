/**
 * The fair waiters of a lock in memory: those of a semaphore by their groups, what each group has had, and whose turn is
 * next. The calls without a group are one more group, '', the only one of all other locks.
 */
import type { Crowd, GroupTags as Order, Turn } from '../kind.ts'
import { type ClaimedGroup, NO_LIMIT } from '../kinds/claim.ts'
import { type Line, Turns } from '../kinds/permits/turns.ts'

/** What a call asks of its group. */
export interface Called {
  readonly permits: number
  readonly group: ClaimedGroup | undefined
}

interface Waits {
  readonly asked: Called & { readonly id: string }
  readonly ticket: number
}

/** What decides whose turn is next, apart from the calls. */
export type Tags = Omit<Order, 'asked'>

interface Account<W> extends Line {
  readonly name: string
  /** The waiters, by ticket. */
  readonly waiting: W[]
  /** The permits of the group's holds; of '', not counted. */
  taken: number
  /** The limit in the newest call. */
  limit: number | undefined
}

/**
 * So many groups without holds and waiters are remembered, those that were used last. A group that is forgotten although
 * it was ahead of its share gains little, because so many other groups were used since then.
 */
const MOST_IDLE = 1_000
/** So many groups are looked at to estimate a wait. */
const MOST_DESCRIBED = 32

const nameOf = ({ group }: Called) => group?.name ?? ''

export class Groups<W extends Waits> {
  readonly #turns = new Turns<Account<W>>()
  readonly #isAlive: (waiter: W) => boolean
  readonly #waiters = new Map<string, W>()
  /** The calls without a group. */
  readonly #others: Account<W> = blank('')
  /** Empty while no call has a group. */
  readonly #accounts = new Map<string, Account<W>>()
  /**
   * Those without holds and waiters, because they may be ahead of their shares, or have a weight. The one that was used
   * last is the last.
   */
  readonly #idle = new Set<Account<W>>()
  /** The largest finish tag of a group that has a name. */
  #top = 0

  constructor(isAlive: (waiter: W) => boolean) {
    this.#isAlive = isAlive
  }

  /** Whether something is known of a group. If not, the order of tickets decides. */
  get grouped(): boolean {
    return this.#accounts.size > 0
  }

  get tags(): Tags {
    return { virtual: this.#turns.virtual, shares: new Map([...this.#accounts, ['', this.#others]]) }
  }

  /** How many wait. */
  get size(): number {
    return this.#waiters.size
  }

  /** All waiters, by ticket. */
  get waiters(): W[] {
    return [...this.#waiters.values()].sort((a, b) => a.ticket - b.ticket)
  }

  /** The waiter that is next in turn, as far as that is known: it may be dead, if there are no groups. */
  get first(): W | undefined {
    return this.grouped ? this.next() : this.#others.waiting[0]
  }

  find(id: string): W | undefined {
    return this.#waiters.get(id)
  }

  /** The waiters of a call's group, by ticket. */
  matesOf(call: Called): readonly W[] {
    return this.#known(call)?.waiting ?? []
  }

  add(waiter: W): void {
    const account = this.#accountOf(waiter.asked)
    insert(account.waiting, waiter)
    this.#waiters.set(waiter.asked.id, waiter)
    this.#settle(account)
  }

  remove(id: string): boolean {
    const waiter = this.#waiters.get(id)
    if (!waiter) return false
    const account = this.#accountOf(waiter.asked)
    account.waiting.splice(account.waiting.indexOf(waiter), 1)
    this.#settle(account)
    return this.#waiters.delete(id)
  }

  /**
   * What decides when a call gets its turn, and some of the groups whose turn may come. Undefined: the lock has no groups.
   * `place`: of the call in its group, from 1.
   */
  turnOf(call: Called, place: number): { turn: Turn; crowd: Crowd } | undefined {
    if (!this.grouped) return undefined
    const account = this.#known(call) ?? blank(nameOf(call))
    const { items, virtual } = this.#turns
    const count = Math.min(items.length, MOST_DESCRIBED)
    const some = Array.from({ length: count }, (_, i) => items[Math.floor(((i + 0.5) * items.length) / count)]!)
    const others = some.filter(each => each !== account)
    const crowd = [
      this.size,
      others.map(
        ({ dueAt, weight, waiting }) => [1, dueAt, weight / waiting[0]!.asked.permits, waiting.length] as const,
      ),
    ] as const
    const stands = account.slot >= 0
    if (!stands && call.group && this.isFull(call)) return { turn: [call.group.limit ?? 0], crowd }
    const start = stands ? account.dueAt : Math.max(virtual, account.finish)
    const rate = account.weight / call.permits
    const before = others.filter(({ dueAt }) => dueAt <= start + (place - 1) / rate).length
    return { turn: [0, start, rate, Math.round((before * items.length) / (count || 1))], crowd }
  }

  /** Decides anew whether the call's group is full: its first waiter may have died. */
  settle(call: Called): void {
    const account = this.#known(call)
    if (account) this.#settle(account)
  }

  /** Returns what earlier calls have said about the group, as `Traits.differs` reads it. */
  said(call: Called): string {
    const account = call.group && this.#known(call)
    return account ? `;${account.limit ?? NO_LIMIT};${account.weight}` : ''
  }

  /** Notes limit and weight of a call. `newest`: they replace those of earlier calls. */
  note(call: Called, newest: boolean): void {
    const { group } = call
    if (!group) return
    const replaces = newest || !this.#known(call)
    const account = this.#accountOf(call)
    if (!replaces) return
    account.limit = group.limit
    account.weight = group.weight ?? account.weight
  }

  granted(call: Called): void {
    if (!call.group && !this.grouped) return
    const account = this.#accountOf(call)
    this.#turns.granted(account, call.permits)
    if (call.group) {
      account.taken += call.permits
      this.#top = Math.max(this.#top, account.finish)
    }
    this.#settle(account)
  }

  ended(call: Called): void {
    if (!call.group) return
    const account = this.#accountOf(call)
    account.taken -= call.permits
    this.#settle(account)
  }

  isFull(call: Called): boolean {
    const taken = this.#known(call)?.taken ?? 0
    return call.group?.limit !== undefined && taken + call.permits > call.group.limit
  }

  /**
   * Returns the first waiter of the group whose turn is next. Undefined: nobody waits, except for full groups. First
   * waiters that are dead are removed.
   */
  next(): W | undefined {
    for (let { first } = this.#turns; first; first = this.#turns.first) {
      const waiter = first.waiting[0] as W
      if (this.#isAlive(waiter)) return waiter
      this.#settle(first)
    }
    return undefined
  }

  /** Called when a hold has ended. `busy`: whether anybody holds or waits. If not, no group is ahead of another. */
  forget(busy: boolean): void {
    if (!this.grouped) return
    if (!busy) this.#turns.virtual = Math.max(this.#turns.virtual, this.#top, this.#others.finish)
    if (this.#accounts.size > this.#idle.size || this.#top > this.#turns.virtual) return
    for (const account of this.#idle) {
      if (account.weight === 1) this.#forget(account)
    }
    this.#others.finish = 0
    this.#settle(this.#others)
  }

  #known(call: Called): Account<W> | undefined {
    return call.group ? this.#accounts.get(nameOf(call)) : this.#others
  }

  #accountOf(call: Called): Account<W> {
    const known = this.#known(call)
    if (known) return known
    const account: Account<W> = { ...blank<W>(nameOf(call)), limit: call.group?.limit }
    this.#accounts.set(account.name, account)
    return account
  }

  /** Decides anew whether a group may be next, and whether it has to be remembered. */
  #settle(account: Account<W>): void {
    const { name, waiting, taken, finish, weight } = account
    while (waiting[0] && !this.#isAlive(waiting[0])) this.#waiters.delete(waiting.shift()!.asked.id)
    const [first] = waiting
    this.#turns.settle(account, first && !this.isFull(first.asked) ? first.ticket : undefined)
    if (name === '') return
    this.#idle.delete(account)
    if (taken > 0 || first) return
    if (finish <= this.#turns.virtual && weight === 1) return this.#forget(account)
    const [oldest] = this.#idle.add(account)
    if (oldest && this.#idle.size > MOST_IDLE) this.#forget(oldest)
  }

  #forget(account: Account<W>): void {
    this.#idle.delete(account)
    this.#accounts.delete(account.name)
  }
}

/** Inserts a waiter by its ticket. */
export function insert<W extends Pick<Waits, 'ticket'>>(line: W[], waiter: W): void {
  let at = line.length
  while (at > 0 && line[at - 1]!.ticket > waiter.ticket) at--
  line.splice(at, 0, waiter)
}

function blank<W>(name: string): Account<W> {
  return { name, waiting: [], taken: 0, finish: 0, weight: 1, limit: undefined, ticket: 0, slot: -1, dueAt: 0 }
}

/**
 * The leases that a client holds: renews those that are to be renewed, and notices the end of every one. One timer.
 *
 * A lease wakes the scheduler at the earlier of two times:
 *   due       when to ask Redis again: a third of its length after the request that last proved it. Renewals that are
 *             due at about the same time go out together, many in one script call (in a cluster those of one slot).
 *   deadline  when it is not surely ours any more. Then it is lost, at once and for good: its signal aborts before the
 *             server can grant the lock to another (I1, I8).
 *
 * A renewal has three outcomes: a new deadline; "gone", which is final; or no answer, which proves nothing and is tried
 * again until the deadline. A released lease is not asked about any more, and what a renewal under way says of it is
 * ignored; it stays in the table until its release is answered, so that its deadline can end that wait too.
 *
 * Adding and removing a lease is cheap, because that is what an uncontended lock does all day: the timer is only moved
 * to an earlier time, never stopped for one lease; when it fires early, it sleeps again. It looks at those leases only
 * that need something, however many there are.
 */
import pTimeout from 'p-timeout'
import { type Clock, surelyUntil, type Timer } from '../clock.ts'
import { LockClosedError, LockLostError } from '../errors.ts'
import type { Held, Kind, Renewed } from '../kind.ts'
import { Agenda } from './agenda.ts'
import { inside, type Lease, type Loss } from './lease.ts'

export interface RenewalListener {
  renewed(lease: Lease): void
  lost(lease: Lease, error: Loss): void
  /**
   * It is being lost, and Redis may still have its hold: for a moment, or for as long as others renew it, because its time was
   * over here; or for the lease of a later grant to the same id.
   */
  remains(lease: Lease): void
  /** Nothing is held any more. */
  idle(): void
}

interface Entry {
  readonly lease: Lease
  /** Of leases, in the order in which they were added. */
  readonly number: number
  /** When to ask Redis, monotonic ms. */
  due: number
  asking: boolean
  /** How many renewals by its user are unanswered. */
  renewing: number
  /** The latest moment for which the lock was asked for. */
  asked: number
  /** How often something has said that the hold may be gone: an answer to an older question does not settle that. */
  doubts: number
  /** Set while the release is under way: called at the deadline. */
  overdue?: () => void
}

interface Question {
  readonly ms: number
  readonly doubts: number
}

/** Renewals that fall due within this part of their lease's length are sent together. */
const TOGETHER = 1 / 20
/**
 * A grant that came by message is proven from an older request. If that leaves less than this part of a lease that is
 * not renewed, the rest is fetched by a confirmation this many ms later, if it is still held then.
 */
const PROVEN = 0.8
const CONFIRM_AFTER = 25
const NEVER = Number.POSITIVE_INFINITY

export class Renewal {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #listener: RenewalListener
  readonly #entries = new Map<string, Entry>()
  readonly #byKey = new Map<string, Set<Lease>>()
  /** When each lease is to be looked at: to be asked about, or because it runs out. */
  readonly #wakes = new Agenda<Entry>()
  /** From when each may be asked about, if others are. */
  readonly #ready = new Agenda<Entry>()
  #added = 0
  #timer: Timer | undefined
  #wakeAt = NEVER

  constructor(kind: Kind, clock: Clock, listener: RenewalListener) {
    this.#kind = kind
    this.#clock = clock
    this.#listener = listener
  }

  get size(): number {
    return this.#entries.size
  }

  /** The leases held, oldest first. */
  get leases(): Lease[] {
    return [...this.#entries.values()].map(entry => entry.lease)
  }

  /** The lease under this hold. */
  find(id: string): Lease | undefined {
    return this.#entries.get(id)?.lease
  }

  add(lease: Lease): void {
    const { lease: length, since } = inside.terms(lease)
    // Of a grant that is hardly proven nobody here knows when it was made: no later than it was told.
    const asked = provesEnough(lease) ? inside.deadline(lease) : surelyUntil(since, length)
    const number = this.#added++
    const entry: Entry = { lease, number, due: this.#firstDue(lease), asking: false, renewing: 0, asked, doubts: 0 }
    this.#entries.set(idOf(lease), entry)
    const siblings = this.#byKey.get(lease.key)
    if (siblings) siblings.add(lease)
    else this.#byKey.set(lease.key, new Set([lease]))
    if (lease.via === 'reentry') this.#raiseFirst(lease)
    this.#plan(entry)
  }

  /**
   * Ends a lease that is handed on within the client: nothing is sent. False if that cannot be: it has ended, it is not the
   * only lease of its key, or something is being asked about it, the answer to which its heir would miss.
   */
  handOn(lease: Lease): boolean {
    this.expire(lease)
    const entry = this.#entryOf(lease)
    if (!entry || entry.asking || entry.renewing > 0 || entry.doubts > 0) return false
    if (this.#byKey.get(lease.key)?.size !== 1) return false
    if (!inside.leave(lease) && inside.state(lease) !== 'releasing') return false
    inside.finish(lease)
    this.#remove(lease)
    return true
  }

  /** The oldest lease of the key. */
  ofKey(key: string): Lease | undefined {
    for (const lease of this.leasesOf(key)) return lease
    return undefined
  }

  /** The leases of the key, oldest first. */
  leasesOf(key: string): Iterable<Lease> {
    return this.#byKey.get(key) ?? []
  }

  /** The leases of the same grant: this one, and those that have re-entered. */
  #siblingsOf(lease: Lease): Lease[] {
    return [...this.leasesOf(lease.key)].filter(({ fencingToken }) => fencingToken === lease.fencingToken)
  }

  /**
   * Ends a lease by its release, which resolves to whether the hold was live. Resolves false as soon as the lease has
   * run out by itself, because from then on there is nothing left to wait for.
   */
  end(lease: Lease, release: () => Promise<boolean>): Promise<boolean> {
    this.expire(lease)
    const entry = this.#entryOf(lease)
    if (!entry || !inside.leave(lease)) return Promise.resolve(false)
    return new Promise<boolean>((resolve, reject) => {
      const over = () => {
        inside.finish(lease)
        this.#remove(lease)
      }
      entry.overdue = () => {
        over()
        resolve(false)
      }
      release().then(
        live => {
          if (!live) this.#lose(lease, 'Redis did not know this hold any more when it was released')
          over()
          resolve(live)
        },
        error => {
          over()
          reject(error)
        },
      )
    })
  }

  /** Asks Redis about all leases of the grant of this one. Of thousands each may be named: the first name is enough for all. */
  checkGrant(lease: Lease): void {
    const entry = this.#entryOf(lease)
    const aboutToAsk = entry && !entry.asking && entry.doubts > 0 && entry.due <= this.#clock.now()
    if (!aboutToAsk) this.check(this.#siblingsOf(lease))
  }

  /** Asks Redis about these leases now: something said that they may be gone, or a message saying so may have been missed. */
  check(leases: Iterable<Lease>): void {
    for (const lease of leases) {
      const entry = this.#entryOf(lease)
      if (!entry) continue
      entry.due = Math.min(entry.due, this.#clock.now())
      entry.doubts += 1
      this.#plan(entry)
    }
  }

  /** Prolongs one lease by `ms` from now. Rejects with LockLostError, or with the LockConnectionError of the attempt. */
  async renew(lease: Lease, ms: number): Promise<void> {
    this.expire(lease)
    const entry = this.#entryOf(lease)
    if (!entry || inside.state(lease) !== 'held') {
      throw new LockLostError(lease.key, 'it is not held any more', inside.loss(lease))
    }
    const question = { ms, doubts: entry.doubts }
    entry.renewing += 1
    const asked = this.#kind.renew([{ ...heldBy(lease), ms }]).finally(() => {
      entry.renewing -= 1
    })
    const patience = { milliseconds: Number.POSITIVE_INFINITY, signal: lease.signal }
    const [deadline] = await pTimeout(asked, patience).catch(error => {
      throw error instanceof LockClosedError ? new LockLostError(lease.key, 'the client was closed', error) : error
    })
    this.#learn(entry, deadline, question)
    if (!lease.held) throw new LockLostError(lease.key, 'it ended while it was being prolonged')
  }

  /** Declares the lease lost if its deadline has passed. For callers that cannot wait for the timer. */
  expire(lease: Lease): void {
    const entry = this.#entryOf(lease)
    if (entry && this.#clock.now() >= inside.deadline(lease)) this.#runOut(entry)
  }

  /**
   * Loses a lease because its client is closed. Redis still has its hold, which is for the caller to end. False: it was not
   * held any more, or it is being released.
   */
  forsake(lease: Lease): boolean {
    this.expire(lease)
    if (!this.#entryOf(lease) || inside.state(lease) !== 'held') return false
    this.#declareLost(lease, new LockClosedError(lease.key))
    return true
  }

  close(): void {
    this.#timer?.cancel()
    this.#entries.clear()
    this.#wakes.clear()
    this.#ready.clear()
    this.#byKey.clear()
  }

  #firstDue(lease: Lease): number {
    const { lease: length, renewUntil, since } = inside.terms(lease)
    if (renewUntil > since) return inside.deadline(lease) - (length * 2) / 3
    return provesEnough(lease) ? NEVER : since + CONFIRM_AFTER
  }

  /** Puts on the agenda what the lease needs next, and wakes in time for it. */
  #plan(entry: Entry): void {
    const { lease } = entry
    const due = entry.asking || entry.overdue ? NEVER : entry.due
    this.#wakes.set(entry, Math.min(due, inside.deadline(lease)))
    this.#ready.set(entry, due - inside.terms(lease).lease * TOGETHER)
    this.#sleep()
  }

  #sleep(): void {
    const at = this.#wakes.next
    if (at >= this.#wakeAt) return
    this.#wakeAt = at
    this.#timer?.cancel()
    this.#timer = this.#clock.after(at - this.#clock.now(), () => this.#wake())
  }

  #wake(): void {
    this.#wakeAt = NEVER
    const now = this.#clock.now()
    const woken = this.#wakes.due(now)
    for (const entry of woken) {
      const { lease } = entry
      if (this.#entryOf(lease) === entry && now >= inside.deadline(lease)) this.#runOut(entry)
    }
    const ready = this.#ready.due(now)
    // Short leases first: they have the least time for what may stand in the way of their answers.
    const due = ready
      .filter(entry => this.#entryOf(entry.lease) === entry && inside.state(entry.lease) === 'held' && !entry.asking)
      .sort((a, b) => inside.terms(a.lease).lease - inside.terms(b.lease).lease || a.number - b.number)
    for (const some of this.#byPlace(due)) this.#ask(some, now)
    for (const entry of [...woken, ...ready]) if (this.#entryOf(entry.lease) === entry) this.#plan(entry)
    this.#sleep()
  }

  #byPlace(entries: readonly Entry[]): Entry[][] {
    const places = new Map<string, Entry[]>()
    for (const entry of entries) {
      const place = this.#kind.placeOf?.(entry.lease.key) ?? ''
      const some = places.get(place)
      if (some) some.push(entry)
      else places.set(place, [entry])
    }
    return [...places.values()]
  }

  async #ask(entries: Entry[], now: number): Promise<void> {
    for (const entry of entries) entry.asking = true
    const asked = entries.map(({ lease }) => {
      const { lease: length, renewUntil } = inside.terms(lease)
      return { ...heldBy(lease), ms: renewUntil > now ? length : 0 }
    })
    const questions = entries.map(({ doubts }, i) => ({ ms: asked[i]!.ms, doubts }))
    let answers: Renewed[] | undefined
    try {
      answers = await this.#kind.renew(asked)
    } catch {
      // Unknown, not lost: asked again soon, until the deadline decides.
    }
    for (const [i, entry] of entries.entries()) {
      entry.asking = false
      if (answers) this.#learn(entry, answers[i], questions[i]!)
      else entry.due = this.#clock.now() + Math.min(1_000, inside.terms(entry.lease).lease / 10)
      if (this.#entryOf(entry.lease)) this.#plan(entry)
    }
  }

  /** Takes in what Redis said of a lease, unless it has ended in the meantime. */
  #learn(entry: Entry, deadline: Renewed, { ms, doubts }: Question): void {
    const { lease } = entry
    if (inside.state(lease) !== 'held') return
    if (deadline === undefined) return this.#lose(lease, 'Redis does not know this hold any more')
    if (deadline === 'anew') return this.#leaveBehind(lease, 'Redis has granted the lock anew')
    const now = this.#clock.now()
    if (ms > 0) entry.asked = Math.max(entry.asked, surelyUntil(now, ms))
    // While the server's clock stands back, the lease seems to last for the step, too; but only until the clock is set right.
    // So it is believed in for no longer than it was asked for, and asked about within a third of its length.
    inside.prolong(lease, Math.min(deadline, entry.asked))
    const { lease: length, renewUntil } = inside.terms(lease)
    if (doubts === entry.doubts) {
      const due = Math.min(inside.deadline(lease) - (length * 2) / 3, now + length / 3)
      entry.due = renewUntil > now ? due : NEVER
    }
    if (ms > 0) this.#listener.renewed(lease)
  }

  /** What lua/acquire.lua does with the grant of a longer re-entry: the first hold of the same client lasts as long. */
  #raiseFirst(lease: Lease): void {
    const first = this.ofKey(lease.key)
    const entry = first && this.#entryOf(first)
    if (!first || !entry || first.fencingToken !== lease.fencingToken || first.via === 'reentry') return
    if (inside.terms(lease).lease <= inside.terms(first).lease) return
    const deadline = inside.deadline(lease)
    entry.asked = Math.max(entry.asked, deadline)
    inside.prolong(first, deadline)
  }

  #runOut(entry: Entry): void {
    // A hold that runs out while its release is unanswered has ended, by the one or the other: nobody has lost it.
    if (entry.overdue) return entry.overdue()
    this.#leaveBehind(entry.lease, 'its lease ran out')
  }

  #lose(lease: Lease, why: string): void {
    this.#declareLost(lease, new LockLostError(lease.key, why))
  }

  #declareLost(lease: Lease, error: Loss): void {
    this.#remove(lease)
    if (inside.lose(lease, error)) this.#listener.lost(lease, error)
  }

  /** Loses a lease whose hold Redis may still have. That comes first: who is told that it is lost may close the client. */
  #leaveBehind(lease: Lease, why: string): void {
    this.#listener.remains(lease)
    this.#lose(lease, why)
  }

  /** Undefined: it has ended, though another lease may have followed it under the same hold. */
  #entryOf(lease: Lease): Entry | undefined {
    const entry = this.#entries.get(idOf(lease))
    return entry?.lease === lease ? entry : undefined
  }

  #remove(lease: Lease): void {
    const entry = this.#entryOf(lease)
    if (!entry) return
    this.#wakes.delete(entry)
    this.#ready.delete(entry)
    this.#entries.delete(idOf(lease))
    const siblings = this.#byKey.get(lease.key)
    siblings?.delete(lease)
    if (siblings?.size === 0) this.#byKey.delete(lease.key)
    if (this.#entries.size === 0) this.#listener.idle()
  }
}

/** A lease is known by its hold, which is what Redis talks about; two that follow each other may have the same. */
function idOf(lease: Lease): string {
  return inside.terms(lease).hold.id
}

/** Whether a lease that has just been granted is known to last for nearly all of its length. */
function provesEnough(lease: Lease): boolean {
  const { lease: length, since } = inside.terms(lease)
  return inside.deadline(lease) - since >= length * PROVEN
}

function heldBy(lease: Lease): Held {
  return { hold: inside.terms(lease).hold, token: lease.fencingToken }
}

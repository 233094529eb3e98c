/**
 * One lock in memory: who holds it, who waits for it, and the rule by which it is granted. The rule is the same for all
 * kinds: each claim wants some permits, and says how many the lock has. A mutex has one. In a read-write lock, a writer
 * wants all permits, and readers wait in a line of their own.
 *
 * The semantics are those of lua/. Nothing is lost on the way here, so what lua/ does against lost messages is missing:
 * a grant is told with its deadline, and a hold that is taken away ends in its client at once.
 */
import { type Clock, surelyUntil } from '../clock.ts'
import { LockDeadlockError } from '../errors.ts'
import {
  CLIENT_ID_LENGTH,
  type Found,
  type Granted,
  type HeartbeatReply,
  type Holder,
  type Pace,
  type Refused,
  type Via,
} from '../kind.ts'
import { type Asked, foundOf, type Holding, type Waiting } from './entries.ts'
import { Groups, insert } from './groups.ts'

/** `among`: as for `Traits.differs`. */
interface RefusedBy extends Refused {
  readonly holder: Holder
  readonly among: string
}

/** What a lock uses of its store. */
export interface Hub {
  readonly clock: { readonly background: Clock }
  now(): number
  /** Issues the next token or ticket: a time in µs that is larger than the last one. */
  tick(): number
  /** Returns when a ticket was issued. */
  timeOf(ticket: number): number
  /** The last token or ticket. */
  readonly last: number
  /** Whether the client with this waiter or hold can receive messages. */
  reaches(id: string): boolean
  won(id: string, grant: Granted, lock: string): void
  /** Called when a hold was taken away. Its client knows before this returns. */
  taken(id: string, token: number, why: string): void
  free(lock: string, by: string | undefined): void
  entered(lock: string, owner: string): void
  /** `head`: the first fair waiter. */
  ends(lock: string, ms: number, head: string | undefined): void
  /** Called when the lock has neither holders nor waiters. */
  idle(lock: MemoryLock): void
}

/** How many of the last holds count for the pace, and the least of them that is enough. */
const PACE = { most: 32, least: 8 }

/** Waiters look at the end of a lease. This many ms later, what they have not ended is ended. */
const AFTER_LAPSE = 30

/** Under which a hold is kept: under its id, until it is over for its caller. */
const nameOf = ({ id, retained }: Pick<Holding, 'id' | 'retained'>) => (retained ? `!${id}` : id)

const clientOf = (id: string) => id.slice(0, CLIENT_ID_LENGTH)

export class MemoryLock {
  readonly name: string
  readonly key: string
  readonly #hub: Hub
  readonly #mutex: boolean
  readonly #holds = new Map<string, Holding>()
  /** The permits of all holds together. */
  #taken = 0
  #writers = 0
  /** No hold ends before this time. */
  #firstEnd = Number.POSITIVE_INFINITY
  /** The fair waiters; in a read-write lock, only the writers. */
  readonly #queue = new Groups<Waiting>(waiter => this.#isAlive(waiter))
  readonly #readers: Waiting[] = []
  /** The lengths in ms of the last holds that were released while callers were queued; of a semaphore, times permits. */
  readonly #lengths: number[] = []
  /** Who was admitted last while both readers and writers waited. */
  #turn: 'read' | 'write' | undefined

  constructor(name: string, key: string, mutex: boolean, hub: Hub) {
    this.name = name
    this.key = key
    this.#mutex = mutex
    this.#hub = hub
  }

  /**
   * Makes an attempt. `join`: queue the claim if it is refused. `waits`: as for `Kind.attempt`. A number: the claim may
   * not wait, because so many callers do.
   */
  ask(asked: Asked, join: boolean, waits: boolean): Granted | RefusedBy | number {
    const lapsed = this.#lapse()
    const known = this.#holds.get(asked.id)
    if (known) return this.#grant(known, known.again ? 'reentry' : 'immediate')
    const owned = this.#ownedBy(asked)
    if (enters(asked, owned)) return this.#reenter(asked, owned)
    if (owned.length > 0 && !waits && !this.#find(asked.id)) throw new LockDeadlockError(asked.key)
    const said = this.#queue.said(asked)
    const via = lapsed ?? 'handoff'
    const { maxWaiters = Number.POSITIVE_INFINITY } = asked
    const limited = join && maxWaiters < Number.POSITIVE_INFINITY
    // Those who fit are admitted, and dead ones passed over, before the others are counted.
    if (limited && this.#taken < asked.of) this.#admit(via, undefined, [asked.id])
    if (join && !this.#holds.has(asked.id) && !this.#may(asked)) {
      const crowd = this.#find(asked.id) || waits ? Number.NEGATIVE_INFINITY : this.#crowd(asked)
      if (crowd >= maxWaiters) return crowd
      this.#join(asked, this.#hub.tick() - Math.round(asked.headStart * 1_000))
      this.#queue.note(asked, true)
    }
    this.#admit(via, undefined, [asked.id])
    const may = !this.#holds.has(asked.id) && this.#may(asked)
    if (may) this.#queue.note(asked, true)
    const admitted = may ? this.#hold(asked) : this.#holds.get(asked.id)
    return admitted ? this.#grant(admitted, lapsed ?? 'immediate') : this.#refuse(asked, said)
  }

  tend(waiters: readonly { readonly asked: Asked; readonly ticket: number }[]): HeartbeatReply {
    const via = this.#lapse() ?? 'handoff'
    for (const { asked, ticket } of waiters) if (!this.#holds.has(asked.id)) this.#join(asked, ticket)
    const ids = waiters.map(({ asked }) => asked.id)
    this.#admit(via, undefined, ids)
    return {
      ...this.#first,
      sent: this.#hub.now(),
      clock: this.#hub.last,
      waiters: waiters.map(({ asked }) => {
        const hold = this.#holds.get(asked.id)
        if (hold) return this.#grant(hold, via)
        const position = this.#position(asked)
        return enters(asked, this.#ownedBy(asked)) ? -position : position
      }),
    }
  }

  /** Takes a request back, queued or granted. */
  leave(id: string): void {
    const lapsed = this.#lapse()
    const hold = this.#holds.get(id)
    if (hold) this.#end(hold)
    if (this.#remove(id) || hold || lapsed) this.#vacated(lapsed ?? 'handoff', hold)
  }

  release(id: string): { ended: boolean } {
    const lapsed = this.#lapse()
    const hold = this.#holds.get(id)
    if (hold && this.#waits) this.#measure(hold)
    if (hold && !this.#retain(hold)) this.#end(hold)
    else if (hold && !lapsed) return { ended: true }
    if (hold || lapsed) this.#vacated(lapsed ?? 'handoff', hold, clientOf(id))
    return { ended: hold !== undefined }
  }

  /**
   * Keeps the lock taken after the release of a hold whose `minHold` has not passed. Returns false if the hold simply
   * ends, as one of several holds of a mutex does: the last one has the same `minHold`.
   */
  #retain(hold: Holding): boolean {
    const left = hold.least - this.#hub.now()
    if (left <= 0 || (this.#mutex && this.#holds.size > 1)) return false
    const retained = { ...hold, retained: true, until: hold.least }
    this.#holds.delete(hold.id)
    this.#holds.set(nameOf(retained), retained)
    this.#firstEnd = Math.min(this.#firstEnd, retained.until)
    this.#endLater(left)
    this.#tellEnd(left)
    // If the group is full, its first waiter is not the next one.
    const mate = hold.group && this.#queue.matesOf(hold)[0]
    if (mate) this.#hub.ends(this.name, left, mate.asked.id)
    return true
  }

  /** Notes how long a hold has lasted; of a read-write lock, how long a turn has lasted. */
  #measure({ token, least, permits, mode }: Holding): void {
    if ((this.#mutex || mode) && this.#taken > permits) return
    const length = Math.max(this.#hub.now(), least) - this.#hub.timeOf(token)
    this.#lengths.push(this.#mutex || mode ? length : length * permits)
    if (this.#lengths.length > PACE.most) this.#lengths.shift()
  }

  /** The place that a call would have behind so many callers; if the lock has groups, the place in its group. */
  placeBehind(asked: Asked, crowd: number): number {
    return 1 + (this.#queue.grouped ? this.#queue.matesOf(asked).length : crowd)
  }

  /** What decides when a call at this place gets its turn, if the lock has groups. */
  turnOf(asked: Asked, place: number): ReturnType<Groups<Waiting>['turnOf']> {
    return this.#queue.turnOf(asked, place)
  }

  get pace(): Pace | undefined {
    const { length } = this.#lengths
    if (length < PACE.least) return undefined
    const hold = this.#lengths.reduce((sum, each) => sum + each, 0) / length
    return { hold, readers: this.#readers.length }
  }

  /** Returns the time until which the hold lasts now; 'lost': it is gone; 'replaced': it is another grant by now. */
  renew(id: string, token: number, ms: number): number | 'lost' | 'replaced' {
    const now = this.#hub.now()
    const hold = this.#holds.get(id)
    if (!hold || hold.until <= now) return 'lost'
    if (hold.token > token) return 'replaced'
    hold.until = Math.max(hold.until, now + ms)
    return surelyUntil(now, hold.until - now)
  }

  /** Takes the lock from its holders, or from the holder `only`. Returns how many holds there were. */
  take(why: string, only?: string): number {
    const lapsed = this.#lapse()
    const holds = [...this.#holds.values()]
    // A mutex has one holder, which is shown with the id of its first hold.
    const whole = only === undefined || (this.#mutex && holds[0]?.id === only)
    const lost = whole ? holds : holds.filter(({ id }) => id === only && !this.#mutex)
    for (const hold of lost) this.#end(hold)
    for (const { id, token, retained } of lost) if (!retained) this.#hub.taken(id, token, why)
    if (lost.length > 0 || lapsed) this.#vacated(lapsed ?? 'handoff', lost[0])
    return lost.length
  }

  /** Whether something is known that the next calls need, although there may be neither a hold nor a waiter. */
  get remembers(): boolean {
    return this.pace !== undefined || this.#queue.grouped
  }

  /** Whether there is a hold or a waiter. */
  get used(): boolean {
    return this.locked || this.#alive().length > 0
  }

  get locked(): boolean {
    return this.#live().length > 0
  }

  get found(): Found {
    const { grouped, tags } = this.#queue
    const [live, alive] = [this.#live(), this.#alive()]
    return foundOf(live, alive, { now: this.#hub.now(), mutex: this.#mutex, pace: this.pace, tags: grouped && tags })
  }

  // The holds.

  #live(): Holding[] {
    const now = this.#hub.now()
    return [...this.#holds.values()].filter(({ until }) => until > now)
  }

  /** Ends the holds whose leases are over. Returns 'expiry' if there were any. */
  #lapse(): 'expiry' | undefined {
    const now = this.#hub.now()
    if (now < this.#firstEnd) return undefined
    const over = [...this.#holds.values()].filter(({ until }) => until <= now)
    for (const hold of over) this.#end(hold)
    this.#firstEnd = Math.min(...[...this.#holds.values()].map(({ until }) => until))
    return over.length > 0 ? 'expiry' : undefined
  }

  /** Called when a client is cut off: nobody ends its holds but this lock. */
  cutOff(client: string): void {
    const left = [...this.#holds.values()].filter(({ id }) => clientOf(id) === client)
    if (left.length > 0) this.#endLater(Math.max(...left.map(({ until }) => until)) - this.#hub.now())
  }

  /** Ends what will be over in `ms`, although no client may call then. */
  #endLater(ms: number): void {
    this.#hub.clock.background.after(ms + AFTER_LAPSE, () => {
      const lapsed = this.#lapse()
      if (lapsed) this.#vacated(lapsed, undefined)
    })
  }

  #hold(asked: Asked, owned: readonly Holding[] = this.#ownedBy(asked), again = false): Holding {
    const { id, owner, lease, permits, mode, minHold = 0, numbered } = asked
    const now = this.#hub.now()
    // All holds of an owner have one token, as those of a re-entry.
    const token = owned[0]?.token ?? this.#hub.tick()
    // A re-entry has no `minHold` of its own; in a mutex, it has that of the first hold.
    const least = again ? (this.#mutex ? (owned[0]?.least ?? 0) : 0) : now + minHold
    const until = now + (again ? lease : Math.max(lease, minHold))
    const slots = numbered ? this.#free(permits) : undefined
    const hold: Holding = { ...asked, token, since: now, again, slots, least, retained: false, until }
    this.#holds.set(id, hold)
    this.#taken += permits
    this.#queue.granted(asked)
    if (mode === 'write') this.#writers += 1
    this.#firstEnd = Math.min(this.#firstEnd, hold.until)
    const nested = clientOf(owner) === clientOf(id)
    if (owned.length === 0 && !nested) this.#hub.entered(this.name, owner)
    this.#tellEnd(until - now)
    return hold
  }

  /** Returns the smallest numbers that no hold has. */
  #free(count: number): number[] {
    const used = new Set([...this.#holds.values()].flatMap(({ slots = [] }) => slots))
    const free: number[] = []
    for (let number = 0; free.length < count; number++) if (!used.has(number)) free.push(number)
    return free
  }

  #end(hold: Holding): void {
    const { permits, mode } = hold
    this.#holds.delete(nameOf(hold))
    this.#taken -= permits
    this.#queue.ended(hold)
    if (mode === 'write') this.#writers -= 1
  }

  /**
   * Returns the holds by which this claim may re-enter. If the caller of the first hold gave no owner, the owner is an
   * id of its client, and only calls of this client re-enter.
   */
  #ownedBy({ id, owner, mode }: Asked): Holding[] {
    if (owner === id || !(this.#mutex || mode)) return []
    return [...this.#holds.values()].filter(hold => {
      const client = clientOf(hold.id)
      return hold.owner === owner && !hold.retained && (clientOf(owner) !== client || clientOf(id) === client)
    })
  }

  /**
   * If the first hold is of the same client, and wants the same, it lasts as long as the new one, which is inside it. That of a
   * mutex does so only if the new lease is longer.
   */
  #reenter(asked: Asked, owned: readonly Holding[]): Granted {
    this.#remove(asked.id)
    const hold = this.#hold(asked, owned, true)
    const first = owned.find(
      ({ id, mode, again }) => !again && mode === asked.mode && clientOf(id) === clientOf(asked.id),
    )
    if (first && (!this.#mutex || asked.lease > first.lease)) first.until = Math.max(first.until, hold.until)
    const grant = this.#grant(hold, 'reentry')
    return { ...grant, ends: grant.deadline, around: first?.id }
  }

  #grant({ token, until, lease, slots }: Holding, via: Via): Granted {
    const now = this.#hub.now()
    const grant: Granted = { granted: true, token, deadline: surelyUntil(now, Math.min(until - now, lease)), via }
    return slots ? { ...grant, slots } : grant
  }

  #refuse(asked: Asked, said: string): RefusedBy {
    const waiting = this.#find(asked.id)
    const first = this.#first
    return {
      ...first,
      among: `${first.among}${said}`,
      granted: false,
      sent: this.#hub.now(),
      position: waiting ? this.#position(asked) : 0,
      ticket: `${waiting?.ticket ?? 0}`,
      clock: this.#hub.last,
    }
  }

  /** The holder whose lease ends first; of a mutex, its only holder. */
  get #first() {
    const now = this.#hub.now()
    let [hold] = this.#holds.values()
    let ends = hold?.until ?? now
    for (const each of this.#holds.values()) {
      if (this.#mutex) ends = Math.max(ends, each.until)
      else if (each.until < ends) ({ until: ends } = hold = each)
    }
    const taken = [this.#taken, this.#holds.size] as const
    return {
      ttl: Math.max(0, ends - now),
      holder: { label: hold?.label ?? '', since: hold?.since ?? now, taken },
      among: hold?.of ?? '',
      owner: hold && hold.owner !== hold.id ? hold.owner : undefined,
    }
  }

  #fits({ permits, of }: Asked): boolean {
    return this.#taken + permits <= of
  }

  /** Whether the claim may be granted now: it fits, its group has room, and nobody is before it. Full groups are passed. */
  #may(asked: Asked): boolean {
    if (!this.#fits(asked) || this.#queue.isFull(asked)) return false
    if (!this.#waits) return true
    return this.#queue.grouped && !this.#queue.next() && this.#queue.matesOf(asked).length === 0
  }

  // The waiters.

  get #waits(): boolean {
    return this.#queue.size + this.#readers.length > 0
  }

  #isAlive({ asked, expires }: Waiting): boolean {
    return expires > this.#hub.now() && this.#hub.reaches(asked.id)
  }

  #alive(some: readonly Waiting[] = [...this.#queue.waiters, ...this.#readers]): Waiting[] {
    const now = this.#hub.now()
    return some.filter(({ expires }) => expires > now)
  }

  /** How many waiters count for `maxWaiters`: those of the claim's group, or all if it has none. */
  #crowd(asked: Asked): number {
    return this.#alive(asked.group && this.#queue.matesOf(asked)).length
  }

  #find(id: string): Waiting | undefined {
    return this.#queue.find(id) ?? this.#readers.find(({ asked }) => asked.id === id)
  }

  /** Adds the waiter, unless it is there. Counts as its heartbeat. */
  #join(asked: Asked, ticket: number): void {
    const expires = this.#hub.now() + asked.waiterTtl
    const known = this.#find(asked.id)
    if (known) {
      known.expires = expires
      this.#queue.settle(asked)
      return
    }
    const waiter = { asked, ticket, joined: this.#hub.timeOf(ticket) + asked.headStart, expires }
    if (asked.mode === 'read') return insert(this.#readers, waiter)
    this.#queue.note(asked, false)
    this.#queue.add(waiter)
  }

  #remove(id: string): boolean {
    const at = this.#readers.findIndex(({ asked }) => asked.id === id)
    return at < 0 ? this.#queue.remove(id) : this.#readers.splice(at, 1).length > 0
  }

  /** The place in the order of grants, from 1, as far as it is known now; inside a group, the place in it. */
  #position(asked: Asked): number {
    const { id, mode } = asked
    const readers = this.#readers.findIndex(({ asked }) => asked.id === id) + 1
    if (mode === 'read') return this.#writers > 0 ? readers : readers + 1
    const place = this.#queue.matesOf(asked).findIndex(({ asked }) => asked.id === id) + 1
    return this.#writers > 0 || place > 1 ? place + this.#readers.length : place
  }

  /**
   * Admits waiters: in the order of their turns, and nobody overtakes the next, even if it wants more permits than are
   * free. While both readers and writers wait, they take turns, and a readers' turn admits all who wait by then.
   * The waiters `mine` learn of their grants by the answer to the call.
   */
  #admit(via: Via, by?: string, mine: readonly string[] = []): void {
    if (!this.#waits) return
    const admit = ({ asked }: Waiting) => {
      const hold = this.#hold(asked)
      if (!mine.includes(asked.id)) this.#hub.won(asked.id, this.#grant(hold, via), this.name)
    }
    const queue = this.#queue
    let next = queue.next()
    if (this.#writers > 0) this.#turn = 'write'
    else if (queue.size === 0 || this.#turn === 'write') {
      for (const reader of this.#readers.splice(0)) if (this.#isAlive(reader)) admit(reader)
      if (this.#taken > 0) this.#turn = 'read'
    }
    for (; next && this.#fits(next.asked); next = queue.next()) {
      if (next.asked.mode) this.#turn = 'write'
      queue.remove(next.asked.id)
      admit(next)
    }
    // Unfair waiters may pass full groups. Their own calls must not tell them so: they would call again without end.
    const passable = !this.#waits || (!next && this.#readers.length === 0 && mine.length === 0)
    if (passable) this.#hub.free(this.name, by)
  }

  /** Called when a hold has ended, or a waiter has left. `by`: the client that released. */
  #vacated(via: Via, ended: Holding | undefined, by?: string): void {
    // Of the holds of a mutex, and of readers, only the end of the last one makes room for others.
    const opened = this.#taken === 0 || !(this.#mutex || ended?.mode === 'read')
    if (this.#waits) this.#admit(via, by)
    else if (opened) this.#hub.free(this.name, by)
    // The latest lease of a mutex may have been released, and the other ones end earlier.
    if (this.#mutex && this.#holds.size > 0) this.#tellEnd(this.#first.ttl)
    const idle = this.#holds.size === 0 && !this.#waits
    this.#queue.forget(!idle)
    if (idle) this.#hub.idle(this)
  }

  /** Tells waiters when a lease ends, because it may end before they look again. */
  #tellEnd(ttl: number): void {
    const next = this.#queue.first ?? this.#readers[0]
    this.#hub.ends(this.name, ttl, next?.asked.id)
  }
}

function enters({ mode }: Asked, owned: readonly Holding[]): boolean {
  return mode === 'write' ? owned.some(hold => hold.mode === 'write') : owned.length > 0
}

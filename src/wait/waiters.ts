/**
 * The table of this client's waiters. No I/O and no time in it: acquire.ts decides what to send, this remembers who waits.
 *
 *      key ──▶ Room ─┬─ line    unfair waiters, first come first; only the head contends     A ─ B ─ C
 *                    └─ queued  fair waiters, their order is Redis's                       { D, E }
 *      id ──▶ Waiter            all of them, single attempts too: messages and replies name a waiter by its id
 *
 * A waiter's wait ends exactly once, granted or not; from then on it is in no room. What still comes for one that ended
 * without a grant has to be given back; what comes again for one that was granted is the same grant, told twice.
 */
import type { Timer } from '../clock.ts'
import type { Channel, Claim, Granted, Holder, Refused } from '../kind.ts'

export interface Wish {
  readonly claim: Claim
  /** 'once': a single attempt. 'line': unfair. 'queue': fair. */
  readonly mode: 'once' | 'line' | 'queue'
  /** With 'line': join the queue after this many ms; undefined: never. */
  readonly fairAfter: number | undefined
  /** With 'line': after so many ms the caller gives up; undefined: never. */
  readonly timeout?: number | undefined
  /** Whether the owner may hold the lock already, here or elsewhere: then it must not stand behind others. */
  readonly mayReenter: boolean
  /** Nothing is asked before this resolves: what Redis has to know by then. If it rejects, so does the wait. */
  readonly after?: Promise<void> | undefined
}

/**
 * Told once how a wait has ended: with a grant, with an error, or without either because the caller has given up. That
 * may be before `Acquirer.start` has returned the waiter.
 */
export type Settle = (end: Granted | Error | undefined, waiter: Waiter) => void

export class Waiter {
  readonly wish: Wish
  /** When it began to wait. */
  readonly since: number
  /** The same in time that this process ran. */
  readonly begun: number
  readonly settle: Settle
  state: 'waiting' | 'granted' | 'ended' = 'waiting'
  /** The last refusal: why it still waits. */
  refusal: Refused | undefined
  /** When the last request that found it waiting was sent, or before that the first one: any grant is later. */
  seen: number | undefined
  /** Whether it was told of a grant that has to be looked at before it is used. */
  told = false
  /** Whether a grant by reply came when its lease was over. */
  late = false
  /** Its place in the fair queue, to join again with. */
  ticket: string | undefined
  /** Whether it has been refused, or stands behind somebody who has: the caller knows that it waits. */
  parked = false
  /** Attempts to join the fair queue were sent: from then on Redis may have something of it. */
  askedToQueue = false
  /** Attempts to take the lock that are not answered. */
  unanswered = 0
  /** ms from this client's own release to the grant, where that release was what it waited for. */
  handoff: number | undefined
  /** The token of a grant of it that was taken away before it was heard of. */
  lost = 0
  /** Whether it was granted, and replicas are being asked whether they have that. */
  confirming = false
  /** The largest token of its grants that had to be confirmed. */
  latest = 0
  /** When replicas did not have a grant of it for the first time. */
  unconfirmedSince: number | undefined
  /** Whether nobody outside this client was known to wait when it was granted. */
  alone = false

  constructor(wish: Wish, since: number, begun: number, settle: Settle) {
    this.wish = wish
    this.since = since
    this.begun = begun
    this.settle = settle
  }

  get claim(): Claim {
    return this.wish.claim
  }

  /** Whether Redis may have, or get, something of it that has to be taken back. */
  get leavesTrace(): boolean {
    return this.askedToQueue || this.unanswered > 0 || this.confirming
  }
}

const nobody: ReadonlySet<Waiter> = new Set()

/** Since when something has been out of reach, and the latest reason. */
export interface Silence {
  readonly since: number
  error: Error
}

/** All waiters of one key, and what they share. */
export class Room {
  readonly key: string
  // Made when they are needed: most rooms need but one of them, and have it for one acquisition.
  #line: Set<Waiter> | undefined
  #queued: Set<Waiter> | undefined
  /** The next look at the truth. */
  timer: Timer | undefined
  due = Number.POSITIVE_INFINITY
  /** A wake-up that no attempt has used yet. */
  woken = false
  contending = false
  /** While it leaves the lock to others: when it tries again itself. */
  turn: Timer | undefined
  tending = false
  /** Somebody has asked for a look that has to be newer than the one under way. */
  tendAgain = false
  /** The last refusal of the line's head: why everybody behind it waits, too. */
  refusal: Refused | undefined
  /** Who holds, by the last that was heard of it, whichever waiter was told. Undefined: nothing was heard. */
  holder: Holder | 'released' | undefined
  /** Set while what the line asks goes unanswered. */
  silence: Silence | undefined
  /** Whether nobody outside this client heard the last release, and nothing has shown anybody since. */
  alone = false
  /** When this client called its release of the lock that the room waits for. */
  releasedAt: number | undefined
  /** The channels that the room needs; each resolves when it was first heard. */
  heard: { [C in Channel]?: Promise<void> | undefined } = {}
  /** Whether the unlock channel has been heard. */
  listening = false

  constructor(key: string) {
    this.key = key
  }

  get line(): ReadonlySet<Waiter> {
    return this.#line ?? nobody
  }

  get queued(): ReadonlySet<Waiter> {
    return this.#queued ?? nobody
  }

  get head(): Waiter | undefined {
    for (const waiter of this.line) return waiter
    return undefined
  }

  get empty(): boolean {
    return this.line.size === 0 && this.queued.size === 0
  }

  /** The refusal with the newest that is known of who holds. */
  upToDate(refusal: Refused): Refused {
    const holder = this.holder === 'released' ? undefined : (this.holder ?? refusal.holder)
    return holder === refusal.holder ? refusal : { ...refusal, holder }
  }

  /** To the end of the line. */
  stand(waiter: Waiter): void {
    this.#line ??= new Set()
    this.#line.add(waiter)
  }

  /** From the line, if it stands there, to the fair ones. */
  queue(waiter: Waiter): void {
    this.#line?.delete(waiter)
    this.#queued ??= new Set()
    this.#queued.add(waiter)
  }

  leave(waiter: Waiter): void {
    this.#line?.delete(waiter)
    this.#queued?.delete(waiter)
  }
}

export class Waiters {
  readonly #rooms = new Map<string, Room>()
  readonly #byId = new Map<string, Waiter>()

  get rooms(): Room[] {
    return [...this.#rooms.values()]
  }

  /** Everybody, whether in a room or not. */
  get all(): Waiter[] {
    return [...this.#byId.values()]
  }

  get size(): number {
    let size = 0
    for (const room of this.#rooms.values()) size += room.line.size + room.queued.size
    return size
  }

  /** From here on the waiter is found, until it is removed. */
  add(waiter: Waiter): void {
    this.#byId.set(waiter.claim.id, waiter)
  }

  /** The waiter with this id, while it waits. */
  find(id: string): Waiter | undefined {
    return this.#byId.get(id)
  }

  room(key: string): Room | undefined {
    return this.#rooms.get(key)
  }

  /** Puts the waiter at the end of the line of its key. */
  line(waiter: Waiter): Room {
    const room = this.#open(waiter.claim.key)
    room.stand(waiter)
    return room
  }

  /** Puts the waiter among the fair ones of its key, out of the line. */
  queue(waiter: Waiter): Room {
    const room = this.#open(waiter.claim.key)
    room.queue(waiter)
    return room
  }

  remove(waiter: Waiter): Room | undefined {
    const room = this.#rooms.get(waiter.claim.key)
    room?.leave(waiter)
    this.#byId.delete(waiter.claim.id)
    return room
  }

  /** Forgets an empty room. */
  close(room: Room): void {
    this.#rooms.delete(room.key)
  }

  #open(key: string): Room {
    let room = this.#rooms.get(key)
    if (!room) {
      room = new Room(key)
      this.#rooms.set(key, room)
    }
    return room
  }
}

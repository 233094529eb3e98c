/**
 * What a lock is in Redis, and what all scripts do to it: lua/include, line for line, over objects instead of keys.
 * Tested against the scripts themselves (server.test.ts).
 */

/** The fields of the lock's hash; `reentries` are its fields `hold:<id>`. */
export interface Hash {
  holder: Holder | undefined
  clock: number
  queued: number | undefined
  keep: number
  holds: number | undefined
  readonly reentries: Map<string, number>
}

/** What stands in the field `holder`, as "<token> <until> <claim>". */
export interface Holder {
  readonly token: number
  readonly until: number
  readonly claim: string
}

/** An id whose hold has ended, while others of the same holder live. */
const ENDED = '-'.repeat(16)

interface Member {
  readonly entry: string
  readonly ticket: number
}

/** A lock's three keys. An empty sorted set is a key that is not there. */
export class LockKeys {
  hash: Hash | undefined
  /** In the order of the tickets, as ZRANGE would tell. */
  queue: Member[] = []
  queueLives = Number.POSITIVE_INFINITY
  expiry = new Map<string, number>()
  expiryLives = Number.POSITIVE_INFINITY

  /** Redis drops what has expired before a script sees it. */
  dropExpired(now: number): void {
    if (this.hash && now > this.hash.keep) this.hash = undefined
    if (this.queue.length > 0 && now > this.queueLives) this.queue = []
    if (this.expiry.size > 0 && now > this.expiryLives) this.expiry.clear()
  }

  get empty(): boolean {
    return !this.hash && this.queue.length === 0 && this.expiry.size === 0
  }

  /** Ids of the holds that live at this time. */
  holds(now: number): string[] {
    const { holder, reentries } = this.hash ?? {}
    if (!holder || holder.until < now) return []
    return [...firstHold(holder.claim), ...reentries!.keys()]
  }

  /** ZADD NX. */
  join(ticket: number, entry: string): boolean {
    if (this.queue.some(member => member.entry === entry)) return false
    if (this.queue.length === 0) this.queueLives = Number.POSITIVE_INFINITY
    const place = this.queue.findIndex(
      other => other.ticket > ticket || (other.ticket === ticket && other.entry > entry),
    )
    this.queue.splice(place < 0 ? this.queue.length : place, 0, { entry, ticket })
    return true
  }

  /** ZREM. */
  remove(entry: string): boolean {
    const place = this.rank(entry)
    if (place >= 0) this.queue.splice(place, 1)
    return place >= 0
  }

  /** ZRANK; -1: absent. */
  rank(entry: string): number {
    return this.queue.findIndex(member => member.entry === entry)
  }

  ticketOf(entry: string): number | undefined {
    return this.queue.find(member => member.entry === entry)?.ticket
  }

  /** ZADD of a deadline. */
  expire(id: string, deadline: number): void {
    if (this.expiry.size === 0) this.expiryLives = Number.POSITIVE_INFINITY
    this.expiry.set(id, deadline)
  }
}

/** What a claim says (lua/include/claim.lua). */
export interface Claim {
  readonly id: string
  readonly lease: number
  readonly ttl: number
  readonly headStart: number
  readonly owner: string
  readonly label: string
}

export function parseClaim(claim: string): Claim {
  const [, id, bytes, lease, ttl, headStart, rest] = /^(\S+) (\d+) (\d+) (\d+) (\d+) (.*)$/.exec(claim)!
  const length = Number(bytes)
  const owner = length === 0 ? id! : rest!.slice(0, length)
  const label = rest!.slice(length)
  return { id: id!, lease: Number(lease), ttl: Number(ttl), headStart: Number(headStart), owner, label }
}

/** The id of the hold that a holder's claim names, unless it has ended. */
export function firstHold(claim: string): string[] {
  const id = claim.slice(0, 28)
  return id.endsWith(ENDED) ? [] : [id]
}

/** Whether a waiter of the queue has not expired (lua/include/promote.lua). */
export function isLive(keys: LockKeys, { id, ttl, headStart }: Claim, ticket: number, now: number): boolean {
  return (ticket + headStart) / 1000 + ttl >= now || (keys.expiry.get(id) ?? Number.NEGATIVE_INFINITY) >= now
}

/** The server as a script sees it, and who watches the scripts. */
export interface Host {
  readonly micros: number
  publish(channel: string, text: string): number
  readonly watcher: Watcher
}

/** Told of what scripts decide; it changes nothing. */
export interface Watcher {
  /** The claim becomes the holder; `reserved`: so many tokens after its own belong to its client. */
  granted(script: LockScript, claim: Claim, reserved: number): void
  /** `id` re-enters. */
  reentered(script: LockScript, id: string): void
  /** The hold has ended by its id. */
  dropped(id: string): void
  /** The holder under this hold was told to be another. */
  passed(script: LockScript, claim: Claim): void
  /** These holds were taken from their holder. */
  taken(ids: readonly string[]): void
  /** A waiter is in the queue; `again`: by its heartbeat. */
  joined(id: string, ticket: number, lock: string, again: boolean): void
  /** A waiter was taken out of the queue by its own wish. */
  left(id: string): void
}

/** One run of a script on one lock: the locals of lua/include/state.lua and the functions over them. */
export class LockScript {
  readonly host: Host
  readonly lock: string
  readonly keys: LockKeys
  readonly memory: number
  readonly inbox: string
  micros = 0
  now = 0
  holder: Holder | undefined
  /** The id of the holder's first hold. */
  hold: string | undefined
  token: number | undefined
  ends: number | undefined
  clock: number
  queued: number | undefined
  keep: number
  holds: number | undefined

  constructor(host: Host, lock: string, keys: LockKeys, memory: number, inbox: string) {
    this.host = host
    this.lock = lock
    this.keys = keys
    this.memory = memory
    this.inbox = inbox
    keys.dropExpired(Math.floor(host.micros / 1000))
    const { hash } = keys
    this.holder = hash?.holder
    this.hold = this.holder?.claim.slice(0, 28)
    this.token = this.holder?.token
    this.ends = this.holder?.until
    this.clock = hash?.clock ?? 0
    this.queued = hash?.queued
    this.keep = hash?.keep ?? 0
    this.holds = hash?.holds
  }

  /** HSET: the key is made where there is none. */
  set(fields: Partial<Hash>): void {
    this.keys.hash ??= {
      holder: undefined,
      clock: 0,
      queued: undefined,
      keep: 0,
      holds: undefined,
      reentries: new Map(),
    }
    Object.assign(this.keys.hash, fields)
  }

  readTime(): void {
    this.micros = this.host.micros
    this.now = Math.floor(this.micros / 1000)
  }

  tick(): number {
    this.clock = Math.max(this.clock + 1, this.micros)
    return this.clock
  }

  prolongedLife(deadline: number): number | undefined {
    const needed = Math.max(deadline, Math.ceil(this.clock / 1000)) + this.memory
    if (this.keep >= needed) return undefined
    this.keep = needed + Math.floor(this.memory / 4)
    return this.keep
  }

  /** Whether somebody holds the lock whose lease has not lapsed. */
  get held(): boolean {
    return this.holder !== undefined && this.holder.until >= this.now
  }

  grant(text: string, lease: number, newToken: number, block?: number): void {
    this.token = newToken
    this.ends = this.now + lease
    this.hold = text.slice(0, 28)
    this.holder = { token: this.token, until: this.ends, claim: text }
    if (block !== undefined) this.clock += block
    this.prolongedLife(this.ends)
    this.set({ holder: this.holder, clock: this.clock, keep: this.keep })
    this.host.watcher.granted(this, parseClaim(text), block ?? 0)
  }

  forgetReentries(): void {
    if (this.holds === undefined) return
    this.keys.hash?.reentries.clear()
    this.set({ holds: undefined })
    this.holds = undefined
  }

  keepQueue(ttl: number, fresh: boolean): void {
    if (this.queued !== undefined && this.queued >= this.now + ttl && !fresh) {
      this.set({ clock: this.clock })
      return
    }
    this.queued = Math.max(this.queued ?? 0, this.now + 2 * ttl)
    this.prolongedLife(this.queued)
    this.set({ clock: this.clock, queued: this.queued, keep: this.keep })
    this.keys.queueLives = this.queued
  }

  /** Makes the first live waiter of the fair queue the holder. Undefined: there is none. */
  promote(reason: string, mine: string | undefined): string | undefined {
    for (;;) {
      const first = this.keys.queue.shift()
      if (!first) {
        if (this.keys.hash) this.keys.hash.queued = undefined
        this.queued = undefined
        return undefined
      }
      const claim = parseClaim(first.entry)
      if (!isLive(this.keys, claim, first.ticket, this.now)) continue
      const { id, lease } = claim
      const token = this.tick()
      let heard = 1
      if (mine === undefined || !id.startsWith(mine)) {
        heard = this.host.publish(this.inbox + id.slice(0, 12), `${reason} ${id} ${token} ${this.lock}`)
      }
      if (heard === 0) continue
      this.grant(first.entry, lease, token)
      return id
    }
  }

  /** The new holder, if there is one; else how many heard that the lock is free. */
  open(mine?: string): { successor?: string; heard?: number } {
    this.forgetReentries()
    const successor = this.queued === undefined ? undefined : this.promote('handoff', mine)
    if (successor !== undefined) return { successor }
    if (this.keys.hash) this.keys.hash.holder = undefined
    return { heard: this.host.publish(`${this.lock}:unlock`, mine === undefined ? 'free' : `free ${mine}`) }
  }

  /** Ends one hold by its id. Whether there was one, and what `open` says. */
  drop(id: string, mine?: string): { dropped: boolean; successor?: string; heard?: number } {
    const first = this.hold === id
    const reentry = this.holds !== undefined && this.keys.hash!.reentries.delete(id)
    if (!first && !reentry) return { dropped: false }
    this.host.watcher.dropped(id)
    if (this.holds === undefined || this.holds === 1) return { dropped: true, ...this.open(mine) }
    if (first) {
      const { lease, ttl, headStart, owner, label } = parseClaim(this.holder!.claim)
      const claim = `${id.slice(0, 12)}${ENDED} ${owner.length} ${lease} ${ttl} ${headStart} ${owner}${label}`
      this.set({ holder: { ...this.holder!, claim } })
    }
    this.set({ holds: this.holds - 1 })
    return { dropped: true }
  }
}

/**
 * What a lock is in Redis, and what all scripts do to it: lua/include, line for line, over objects instead of keys.
 * Tested against the scripts themselves (server.test.ts).
 */

/** The fields of the lock's hash; `reentries` are its fields `hold:<id>`. */
export interface Hash {
  owner: string | undefined
  hold: string | undefined
  label: string | undefined
  token: number | undefined
  until: number | undefined
  clock: number
  queued: number | undefined
  keep: number
  holds: number | undefined
  readonly reentries: Map<string, number>
}

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
    const { hash } = this
    if (hash?.owner === undefined || hash.until! < now) return []
    return [...(hash.hold === undefined ? [] : [hash.hold]), ...hash.reentries.keys()]
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

/** What a queue entry says (lua/include/promote.lua). */
export interface Entry {
  readonly id: string
  readonly lease: number
  readonly ttl: number
  readonly headStart: number
  readonly owner: string
  readonly label: string
}

export function parseEntry(entry: string): Entry {
  const [, id, lease, ttl, headStart, bytes, rest] = /^(\S+) (\d+) (\d+) (\d+) (\d+) (.*)$/.exec(entry)!
  const [owner, label] = [rest!.slice(0, Number(bytes)), rest!.slice(Number(bytes))]
  return { id: id!, lease: Number(lease), ttl: Number(ttl), headStart: Number(headStart), owner, label }
}

/** Whether a queue entry has not expired (lua/include/promote.lua). */
export function isLive(keys: LockKeys, { id, ttl, headStart }: Entry, ticket: number, now: number): boolean {
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
  /** `id` becomes the holder. */
  granted(script: LockScript, id: string, owner: string): void
  /** `id` re-enters. */
  reentered(script: LockScript, id: string): void
  /** The hold has ended by its id. */
  dropped(id: string): void
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
  owner: string | undefined
  hold: string | undefined
  token: number | undefined
  label: string | undefined
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
    this.owner = hash?.owner
    this.hold = hash?.hold
    this.token = hash?.token
    this.label = hash?.label
    this.ends = hash?.until
    this.clock = hash?.clock ?? 0
    this.queued = hash?.queued
    this.keep = hash?.keep ?? 0
    this.holds = hash?.holds
  }

  /** HSET: the key is made where there is none. */
  set(fields: Partial<Hash>): void {
    this.keys.hash ??= {
      owner: undefined,
      hold: undefined,
      label: undefined,
      token: undefined,
      until: undefined,
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

  grant(id: string, owner: string, label: string, lease: number): void {
    this.token = this.tick()
    this.owner = owner
    this.hold = id
    this.label = label
    this.ends = this.now + lease
    this.prolongedLife(this.ends)
    const { token, keep } = this
    this.set({ owner, hold: id, until: this.ends, token, clock: token, label, keep })
    this.host.watcher.granted(this, id, owner)
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
      const entry = parseEntry(first.entry)
      if (!isLive(this.keys, entry, first.ticket, this.now)) continue
      const { id, owner, label, lease } = entry
      const token = Math.max(this.clock + 1, this.micros)
      let heard = 1
      if (mine === undefined || !id.startsWith(mine)) {
        heard = this.host.publish(this.inbox + id.slice(0, 12), `${reason} ${id} ${token} ${this.lock}`)
      }
      if (heard === 0) continue
      this.grant(id, owner, label, lease)
      return id
    }
  }

  open(mine?: string): string | undefined {
    this.forgetReentries()
    const successor = this.queued === undefined ? undefined : this.promote('handoff', mine)
    if (successor !== undefined) return successor
    if (this.keys.hash) this.keys.hash.owner = this.keys.hash.hold = undefined
    this.host.publish(`${this.lock}:unlock`, 'free')
    return undefined
  }

  /** Ends one hold by its id. Whether there was one, and the new holder, if there is one. */
  drop(id: string, mine?: string): { dropped: boolean; successor?: string | undefined } {
    const reentry = this.hold !== id
    if (reentry && !(this.holds !== undefined && this.keys.hash?.reentries.delete(id))) return { dropped: false }
    this.host.watcher.dropped(id)
    if (this.holds === undefined || this.holds === 1) {
      if (this.queued !== undefined) this.readTime()
      return { dropped: true, successor: this.open(mine) }
    }
    if (!reentry) this.keys.hash!.hold = undefined
    this.set({ holds: this.holds - 1 })
    return { dropped: true }
  }
}

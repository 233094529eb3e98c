/**
 * Presents the connections to N independent servers as one Redis, which is up while a majority of the servers is up.
 * The servers' messages go to the ballots (ballots.ts), and the client receives what a majority says.
 *
 *      Session ──▶ Quorum ─┬─▶ Server ──▶ Redis 1       QuorumKind ─┬─▶ Mutex of server 1
 *                          ├─▶ Server ──▶ Redis 2                   ├─▶ Mutex of server 2
 *                          └─▶ Server ──▶ Redis 3                   └─▶ Mutex of server 3
 */
import type { Backend, Made } from '../../backend.ts'
import type { Clock, Timer } from '../../clock.ts'
import { LockArgumentError, LockConnectionError, LockError } from '../../errors.ts'
import type { Channel, Channels, KindDefinition } from '../../kind.ts'
import { addressOf } from '../../redis/address.ts'
import type { RedisSource } from '../../redis/clients.ts'
import { type Ids, randomIds } from '../../redis/ids.ts'
import type { Keys } from '../../redis/keys.ts'
import type { LinkListener } from '../../redis/link.ts'
import { Server } from '../../redis/server.ts'
import type { Settings } from '../../settings.ts'
import { Ballots } from './ballots.ts'
import { Eligibility, Floor } from './eligibility.ts'
import { QuorumKind } from './kind.ts'
import { kindOf, Member, noMajority } from './member.ts'
import { type Electorate, majorityOf, Round } from './round.ts'
import { Waiters } from './waiters.ts'

/** A problem of a server is reported if it lasts for this many ms. */
const LASTING = 500

export class Quorum implements Backend, Electorate {
  readonly ids: Ids
  readonly members: readonly Member[]
  readonly majority: number
  readonly clock: Clock
  readonly #listener: LinkListener
  readonly #floor: Floor
  readonly #openings: Openings
  readonly #ballots: Ballots
  readonly #waiters: Waiters
  readonly #kind: QuorumKind
  /** Whether a majority of the servers was up at the latest call of `#changed`. */
  #whole: boolean | undefined
  #reported = false
  #telling: Timer | undefined

  constructor(
    sources: readonly RedisSource[],
    settings: Settings,
    clock: Clock,
    listener: LinkListener,
    ids = randomIds(),
  ) {
    const now = () => clock.now()
    this.ids = ids
    this.clock = clock
    this.#listener = listener
    this.majority = Math.floor(sources.length / 2) + 1
    this.#floor = new Floor(now, sources.length, () => this.#readClocks())
    this.#openings = new Openings(now, this.majority)
    const servers = sources.map((source, i) => new Server(source, settings, clock, this.#listenTo(i), this.ids))
    const addresses = servers.map(({ commands }) => addressOf(commands.redis))
    const twice = addresses.find((address, i) => addresses.indexOf(address) !== i)
    if (twice !== undefined)
      throw new LockArgumentError('redis', `an array with ${twice} twice`, 'servers at different addresses')
    this.members = servers.map((server, i) => {
      const name = `server ${i + 1} of ${servers.length} (${addresses[i]})`
      const eligibility = new Eligibility(clock, settings.lease, {
        changed: () => {
          this.#changed()
          this.members[i]?.recheck()
        },
        twin: runs =>
          this.members.find((other, j) => j !== i && other.eligibility.runs.some(id => runs.includes(id)))?.name,
      })
      return new Member(i, name, server, eligibility, clock, settings.outageTimeout)
    })
    this.#ballots = new Ballots(this, settings.waiterTtl, {
      won: ({ id, key }, grant) => listener.onGranted(id, grant, this.#keys.of(key).lock),
      denied: (member, error) => {
        member.refusal = error
        this.#tellSoon()
      },
      waits: ballot => this.#waiters.hope(ballot),
    })
    this.#waiters = new Waiters(this.#ballots)
    this.#kind = new QuorumKind(this.#ballots, this.#waiters, this.#floor, settings)
  }

  get inboxPerLock(): boolean {
    return this.members.some(({ server }) => server.inboxPerLock)
  }

  get up(): boolean {
    return this.members.filter(({ mayCount }) => mayCount).length >= this.majority
  }

  get reachable(): boolean {
    return this.members.some(({ up }) => up)
  }

  get answeredAt(): number {
    return Math.max(...this.members.map(({ server }) => server.answeredAt))
  }

  trouble(): Error | undefined {
    const problems = this.members.map(({ problem }) => problem)
    const well = problems.filter(problem => problem === undefined).length
    return well < this.majority ? noMajority(problems) : undefined
  }

  open(): void {
    for (const { server } of this.members) server.open()
  }

  close(): void {
    this.#telling?.cancel()
    for (const member of this.members) member.close()
  }

  async rest(): Promise<void> {
    await this.#ballots.rest()
  }

  together(): void {
    for (const { server } of this.members) server.together()
  }

  make<State, S>(kind: KindDefinition<State, S>, warn: (error: LockError) => void): Made<State> {
    if (kind.name !== '')
      throw new LockArgumentError('kind', kind.name, 'a mutex, the only kind of lock that a quorum has so far')
    for (const member of this.members) {
      if (!member.keys) Object.assign(member, member.server.make(kind, warn))
    }
    return { keys: this.#keys, kind: this.#kind as unknown as Made<State>['kind'] }
  }

  /** The names of the locks on the first server, which are those that the session uses. */
  get #keys(): Keys {
    return this.members[0]!.keys as Keys
  }

  channels(keys: Keys): Channels {
    const each = this.members.map(member => member.server.channels(member.keys ?? keys))
    const isSubscribed = (key: string, channel: Channel) =>
      each.filter(channels => channels.isSubscribed(key, channel)).length >= this.majority
    return {
      isSubscribed,
      subscribe: (key, channel) => {
        const hearing = each.map(channels => channels.subscribe(key, channel) ?? Promise.resolve())
        return isSubscribed(key, channel) ? undefined : majorityOf(this, hearing)
      },
      unsubscribe: (key, channel) => {
        for (const channels of each) channels.unsubscribe(key, channel)
      },
    }
  }

  async *list(kinds: readonly Keys[], pattern: string): AsyncGenerator<[kind: number, key: string][], void, undefined> {
    const round = new Round(this, { verdict: () => 'open' })
    const lists = this.members.map((member, i) => {
      const its = kinds.map(keys => member.keys ?? keys)
      const pages = member.server.list(its, pattern)
      const list = { pages, first: undefined as ReturnType<typeof pages.next> | undefined }
      round.ask(i, 'answer', () => {
        list.first = pages.next()
        return list.first
      })
      return list
    })
    await round.settled()
    const { errors } = round
    const seen = new Set<string>()
    for (const [i, { pages, first }] of lists.entries()) {
      // Skips a server that has not sent the first page of its list in time.
      if (!round.has(i)) continue
      try {
        for (let page = await first; page && !page.done; page = await pages.next()) {
          const found = page.value.filter(([kind, key]) => !seen.has(`${kind} ${key}`))
          for (const [kind, key] of found) seen.add(`${kind} ${key}`)
          yield found
        }
      } catch (error) {
        errors[i] = error as Error
      }
    }
    if (errors.filter(Boolean).length > this.members.length - this.majority) throw noMajority(errors)
  }

  #readClocks(): void {
    for (const { index, up, server } of this.members) {
      if (!up) continue
      const sent = this.clock.now()
      const read = server.commands.redis.time() as Promise<[seconds: number | string, micros: number | string]>
      read.then(
        ([seconds, micros]) => {
          this.#floor.reading(index, Number(seconds) * 1e6 + Number(micros), sent)
          this.#ballots.reconsider()
        },
        // A failed reading is ignored. While no clock has been read, a grant takes a second round trip (eligibility.ts).
        () => {},
      )
    }
  }

  /**
   * Translates `lock`, the name of a lock on a server. Returns the name of the same lock on the first server, because
   * session.ts uses only the names there. Returns undefined if `lock` is not the name of a lock of this kind.
   */
  #nameOf(server: number, lock: string): string | undefined {
    const key = this.members[server]?.keys?.keyOf(lock)
    return key === undefined ? undefined : this.#keys.of(key).lock
  }

  #listenTo(i: number): LinkListener {
    const listener = this.#listener
    const member = () => this.members[i] as Member
    const said = (what: string, lock: string, tell: (lock: string, by: string | undefined) => void, by?: string) => {
      const name = this.#nameOf(i, lock)
      const opening = name === undefined ? undefined : this.#openings.said(`${what} ${name}`, i, by)
      if (name !== undefined && opening) tell(name, opening.by)
    }
    return {
      onGranted: (id, { token, via }, lock) => {
        if (this.#waiters.announced(i, id, token, via)) return
        const key = member().keys?.keyOf(lock)
        if (key !== undefined)
          member()
            .kind.giveBack({ key, id })
            .catch(() => {})
      },
      onTaken: (id, token) => {
        this.#ballots.taken(i, id, token)
        listener.onTaken(id, 0)
      },
      onUnlocked: (lock, by) => {
        said('free', lock, (name, one) => listener.onUnlocked(name, one), by)
      },
      onEnds: (lock, ms) => {
        const name = this.#nameOf(i, lock)
        if (name !== undefined) listener.onEnds?.(name, ms)
      },
      onEntered: (lock, owner) => said(`entered ${owner}`, lock, name => listener.onEntered(name, owner)),
      onDown: (error, brief) => {
        member().lost(error, brief)
        this.#changed()
        member().recheck()
      },
      onUp: () => {
        member().connected()
        this.#changed()
        this.#readClocks()
      },
      onMessagesResumed: lock => {
        if (lock === undefined) return listener.onMessagesResumed()
        const name = this.#nameOf(i, lock)
        if (name !== undefined) listener.onMessagesResumed(name)
      },
      onDisconnected: () => this.#report(),
      onReconnected: () => this.#report(),
      onWarning: error =>
        listener.onWarning?.(new LockError(error.code, `${member().name}: ${error.message}`, undefined, error)),
      busy: () => listener.busy(),
    }
  }

  /**
   * Reports the servers that cannot be used, because calls succeed without them. If a majority has the same problem, the
   * calls and the event `disconnected` report it.
   */
  #tellSoon(): void {
    this.#telling ??= this.clock.after(LASTING, () => {
      this.#telling = undefined
      const troubles = this.members.map(({ trouble }) => trouble)
      const kinds = troubles.map(kindOf)
      for (const [i, member] of this.members.entries()) {
        const reason = troubles[i]
        if (!reason || kinds.filter(kind => kind === kinds[i]).length >= this.majority || !member.isNews(reason))
          continue
        this.#listener.onWarning?.(new LockConnectionError(member.name, reason))
      }
    })
  }

  /**
   * Whether fewer than a majority of the servers are usable. A server is unusable if the connection to it was lost or
   * could not be made, or if its votes do not count. While the first connection to a server is being made, the server
   * counts as usable.
   */
  get #lacking(): boolean {
    const useless = this.members.filter(({ away, counts }) => away || counts === false)
    return useless.length > this.members.length - this.majority
  }

  /** Called after a server was connected or lost, and when its votes begin to count. */
  #changed(): void {
    if (this.members.some(({ trouble }) => trouble)) this.#tellSoon()
    const whole = this.up
    if (whole !== this.#whole || !whole) {
      this.#whole = whole
      const error = whole ? undefined : this.trouble()
      if (whole) this.#listener.onUp()
      else if (error && this.#lacking) this.#listener.onDown(error, false)
    }
    this.#report()
    this.#ballots.reconsider()
  }

  /** Emits `disconnected` when a majority is no longer available, and `reconnected` when one is available again. */
  #report(): void {
    const [trouble, { up }] = [this.trouble(), this]
    if (!up && trouble && this.#lacking && this.members.some(({ away }) => away) && !this.#reported) {
      this.#reported = true
      this.#listener.onDisconnected(trouble)
    } else if (up && this.#reported) {
      this.#reported = false
      this.#listener.onReconnected()
    }
  }
}

/**
 * Messages about the same release arrive within this many ms of each other. A later message is about another release.
 */
const TOGETHER = 1_000

interface Opening {
  readonly since: number
  readonly servers: Set<number>
  /** The client that has released the lock; undefined: the client is unknown, or there was more than one. */
  by: string | undefined
}

/**
 * Counts the servers' messages that a lock is free. Every server sends its own message, but a lock that is free only on
 * a minority of the servers is not free. So only the message that completes a majority wakes the waiters. An earlier
 * message would wake them in vain, and a later one would wake them a second time.
 */
class Openings {
  readonly #now: () => number
  readonly #majority: number
  /** The messages counted so far, by their text and lock, oldest first. */
  readonly #open = new Map<string, Opening>()

  constructor(now: () => number, majority: number) {
    this.#now = now
    this.#majority = majority
  }

  /**
   * Records a message of this server, caused by the client `by`. If this message completes a majority, returns which
   * client has released the lock; otherwise returns undefined.
   */
  said(what: string, server: number, by?: string): Pick<Opening, 'by'> | undefined {
    const now = this.#now()
    for (const [old, { since }] of this.#open) {
      if (now - since < TOGETHER) break
      this.#open.delete(old)
    }
    let opening = this.#open.get(what)
    // A second message of the same server shows that the lock was taken and released in the meantime. The count begins
    // again.
    if (!opening || opening.servers.has(server)) {
      this.#open.delete(what)
      opening = { since: now, servers: new Set(), by }
      this.#open.set(what, opening)
    }
    // If the messages name different clients, each of these clients may have given back the vote of one server. Then no
    // single client has released the lock.
    if (opening.by !== by) opening.by = undefined
    return opening.servers.add(server).size === this.#majority ? opening : undefined
  }
}

/**
 * One of the servers of a quorum: its connections, the requests that wait until it can be reached, its mutex, and whether
 * its votes count (`Standing`).
 */
import type { Redis } from 'ioredis'
import { awake, type Clock, type Timer } from '../../clock.ts'
import { LockClosedError, LockConnectionError, LockError } from '../../errors.ts'
import type { Kind } from '../../kind.ts'
import type { LockState } from '../../kinds/state.ts'
import type { Connection } from '../../redis/connection.ts'
import type { Keys } from '../../redis/keys.ts'
import type { Server } from '../../redis/server.ts'

/** How far the clocks of a server and of this client may drift apart, as a fraction of the time that passes. */
export const DRIFT = 0.01
/** A server that leaves requests unanswered and sends nothing for this many ms is reported as unusable. */
const SILENT = 500
/** If a request has been unanswered for this many ms, further requests are kept back (`Member.keep`). */
const BEHIND = 1_000
/** How often a server that leaves requests unanswered is checked again, in ms. */
const RECHECK = 100

/** A request that is kept back. */
interface Kept {
  readonly since: number
  readonly send: () => void
  readonly failed: (error: Error) => void
}

/** What a server reports about itself. */
interface Account {
  /** The latest time at which the server may have lost data, in ms of this client's clock. −∞: it loses none. */
  readonly since: number
  /** The id that the server has given itself at its start. A cluster has one for each master. */
  readonly runs: readonly string[]
  /** The server that this one copies, if it is a replica. */
  readonly copies: string | undefined
}

/** How long the client waits before it asks a server again that is still loading its data, in ms. */
const LOADING = 100
/** The first and the longest pause before a server is asked again that has not said whether its votes count, in ms. */
const AGAIN = { first: 100, longest: 5_000 }
/** While the votes of a server do not count yet, waiters are checked this often, in ms. */
const CHECK = 1_000

export class Member {
  readonly index: number
  /** The server's number and address, for errors and events. */
  readonly name: string
  readonly server: Server
  readonly standing: Standing
  /** The problems of this server that have been reported (`isNews`). */
  readonly #told = new Set<string>()
  /** The one of them that is over when the server is connected again. */
  #passing: string | undefined
  /** Why there is no connection; undefined: one is being made, and will probably be up soon. */
  down: Error | undefined
  /** How often a connection was lost or could not be made. Each time, the server may have been restarted. */
  epoch = 0
  /** The server's refusal of the latest request that it has answered. */
  refusal: Error | undefined
  readonly #clock: Clock
  readonly #outageTimeout: number
  /** The requests that are kept back, oldest first. */
  readonly #kept = new Set<Kept>()
  #timer: Timer | undefined

  constructor(index: number, name: string, server: Server, standing: Standing, clock: Clock, outageTimeout: number) {
    this.index = index
    this.name = name
    this.server = server
    this.standing = standing
    this.#clock = awake(clock)
    this.#outageTimeout = outageTimeout
  }

  /**
   * Whether a request would wait now, because there is no connection or because the server answers nothing. A server
   * that refuses the connection for good is within reach: it rejects a request at once.
   */
  get outOfReach(): boolean {
    const { rejects, up, lag } = this.server.commands
    return !rejects && (!up || lag > BEHIND)
  }

  /**
   * Keeps a request back while the server is out of reach. So requests do not pile up in front of an absent server, and
   * nothing has to be taken back from it when their callers no longer need its answer. Calls `send` when the server can
   * be reached, and `failed` if it is out of reach for `outageTimeout` (I6). Returns a function that drops the request.
   */
  keep(send: () => void, failed: (error: Error) => void): () => void {
    const kept = { since: this.#clock.now(), send, failed }
    this.#kept.add(kept)
    this.#timer ??= this.#recheckLater()
    return () => void this.#kept.delete(kept)
  }

  /** Sends the requests that were kept back, if the server can be reached now. */
  recheck(): void {
    const { outOfReach } = this
    const now = this.#clock.now()
    for (const kept of this.#kept) {
      if (outOfReach && now - kept.since < this.#outageTimeout) break
      this.#kept.delete(kept)
      if (outOfReach) kept.failed(reasonOf(this))
      else kept.send()
    }
    this.#timer?.cancel()
    this.#timer = this.#recheckLater()
  }

  /** Closes the connections. Requests that are kept back fail, so that no timer is left (I7). */
  close(): void {
    this.standing.forget()
    this.server.close()
    this.#timer?.cancel()
    for (const { failed } of this.#kept) failed(new LockClosedError())
    this.#kept.clear()
  }

  #recheckLater(): Timer | undefined {
    const [oldest] = this.#kept
    if (!oldest) return undefined
    const pause = this.up ? RECHECK : oldest.since + this.#outageTimeout - this.#clock.now()
    return this.#clock.after(pause, () => this.recheck())
  }

  get up(): boolean {
    return this.server.up
  }

  /** Whether requests are rejected at once, without being sent (`Connection.rejects`). */
  get rejects(): boolean {
    return this.server.commands.rejects
  }

  /** Whether there is no connection now, and the last one ended or could not be made. */
  get away(): boolean {
    return !this.up && this.down !== undefined
  }

  /** Records that the connection has ended, or could not be made. `brief`: the next one will probably be up at once. */
  lost(error: Error, brief: boolean): void {
    this.down = brief ? undefined : error
    this.epoch += 1
    this.standing.forget()
  }

  /** Records that there is a connection again. */
  connected(): void {
    if (this.#passing !== undefined) this.#told.delete(this.#passing)
    this.#passing = undefined
  }

  /**
   * Returns whether a problem of this server has to be reported, and records that it was. `passing`: it is over when the
   * server is connected again. Until then, no other such problem is reported, because the reason may change from attempt
   * to attempt.
   */
  isNews(problem: Error, passing = false): boolean {
    const kind = kindOf(problem) as string
    if (this.#told.has(kind) || (passing && this.#passing !== undefined)) return false
    this.#told.add(kind)
    if (passing) this.#passing = kind
    return true
  }

  /** Whether this server repeats the votes of another one (`Standing`). */
  get repeats(): boolean {
    return this.standing.repeats
  }

  /** Whether this server's votes count now (`Standing`). */
  get counts(): boolean {
    return this.standing.counts === true
  }

  /**
   * Whether this server is connected and its votes may count. Until the server has reported its uptime, it is unknown
   * whether its votes count.
   */
  get mayCount(): boolean {
    return this.up && this.standing.counts !== false
  }

  /** Why this server cannot be used now; undefined: it can be used. */
  get problem(): Error | undefined {
    if (!this.up) return this.down ?? new Error('the client has not connected to this server yet; check the address')
    if (this.standing.counts === false) return this.standing.reason
    const trouble = this.server.trouble()
    if (trouble) return trouble
    const { silence } = this.server.commands
    return silence > SILENT ? new Error(`the server has not answered for ${Math.round(silence)} ms`) : this.refusal
  }
}

/** Returns the same text for the same problem of several servers, such as OOM or ECONNREFUSED. */
export function kindOf(reason: Error | undefined): string | undefined {
  const error: NodeJS.ErrnoException | undefined = reason?.cause instanceof Error ? reason.cause : reason
  return error?.code ?? error?.message.replace(/^([A-Z]{2,}) .*|\d+/gs, '$1')
}

/** Returns why this server has not answered a request. */
export function reasonOf(member: Member): Error {
  return member.problem ?? new Error('the server has not answered')
}

/**
 * Returns the error for the case that no majority of the servers has answered, or that their answers differ.
 * `reasons`: for each server, why it has not answered; undefined if it has answered.
 */
export function noMajority(reasons: readonly (Error | undefined)[]): LockError {
  const { length } = reasons
  // An error that is not about a connection, such as LockClosedError, is the same for all servers. So the first such
  // error is returned.
  const own = reasons.find(reason => reason instanceof LockError && !(reason instanceof LockConnectionError))
  if (own) return own as LockError
  const errors = reasons.flatMap((error, i) =>
    error ? [new LockConnectionError(`server ${i + 1} of ${length}`, causeOf(error))] : [],
  )
  const answered = `${length - errors.length} of ${length} answered`
  return new LockConnectionError(
    "no majority of the quorum's servers gave the same answer",
    new AggregateError(errors, answered),
  )
}

/**
 * Returns the error of the server or the socket that caused `error`. If no such cause is known, returns `error` itself.
 */
function causeOf(error: Error): Error {
  return error instanceof LockConnectionError && error.cause instanceof Error ? error.cause : error
}

/** One server of a quorum, and the mutex on it. */
export interface Place {
  readonly member: Member
  readonly kind: Kind<LockState>
  readonly vote: NonNullable<Kind['vote']>
  readonly keys: Keys
}

export interface StandingListener {
  /** Called when the server has reported about itself, and while its votes do not count yet. */
  changed(): void
  /** Returns the name of another server that has given itself one of these ids, so that both are the same. */
  twin(runs: readonly string[]): string | undefined
}

/**
 * Decides whether the votes of a server count. A server that was restarted without its data no longer knows the holders
 * of its locks, so its vote could give a second holder a majority (I1):
 *
 *   A holds the lock on servers 1 and 2. Server 2 comes back empty. Servers 2 and 3 grant the lock to B: two holders.
 *
 * So a server's votes do not count until all leases that it may have granted before its start have ended. That is
 * certain once the server has been up for longer than the longest lease of the clients, which is their option `lease`.
 * The votes count at once if the server reports that it writes each change to disk before it answers, because such a
 * server loses nothing.
 *
 * The votes of a replica never count, because it repeats those of its master: the two would be one machine with two
 * votes (I1). The same is true of one server at two addresses. Such a server is asked again and again, and so is one
 * that does not report about itself.
 */
export class Standing {
  readonly #clock: Clock
  readonly #longest: number
  readonly #listener: StandingListener
  #account: Account | undefined
  #looks = 0
  /** Why no vote of the server counts, and no time is known after which they will. */
  useless: Error | undefined
  /** When the server was last known as a replica. As a replica, it has lost the votes that it gave before. */
  #copiedUntil = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined

  /** `longest`: the longest lease of the clients, in ms. */
  constructor(clock: Clock, longest: number, listener: StandingListener) {
    this.#clock = clock
    this.#longest = longest
    this.#listener = listener
  }

  /** Whether the server's votes count now; undefined: the server has not reported about itself yet. */
  get counts(): boolean | undefined {
    if (this.useless) return false
    return this.#account && this.wait === 0
  }

  /** Returns whether the server's votes counted already at `time`, according to its latest report. */
  countedAt(time: number): boolean {
    return this.#countsFrom <= time
  }

  /** How many ms it takes until the server's votes count; 0: they count now. */
  get wait(): number {
    return Math.max(0, this.#countsFrom - this.#clock.now())
  }

  /** Whether the server is a replica, or the same one as another. */
  get repeats(): boolean {
    return this.useless !== undefined && this.#account !== undefined
  }

  /** The ids that the server has given itself. */
  get runs(): readonly string[] {
    return this.#account?.runs ?? []
  }

  /** Why the server's votes do not count. */
  get reason(): Error {
    if (this.useless) return this.useless
    const up = Math.floor((this.#clock.now() - (this.#account?.since ?? 0)) / 1_000)
    const needs = `so its votes count only after another ${Math.ceil(this.wait)} ms, when all earlier leases have ended`
    return new Error(
      `the server has been up for ${up} s and may have lost its data before, ${needs}; with appendfsync always, they would count immediately`,
    )
  }

  /** Forgets the server's report. Called when the connection is lost, because the server may have been restarted. */
  forget(): void {
    this.#looks += 1
    this.#timer?.cancel()
    this.#account = this.useless = undefined
  }

  /** Asks the server about itself, again and again, until its votes count. */
  async look(connection: Connection): Promise<void> {
    this.forget()
    const look = this.#looks
    for (let pause = AGAIN.first; ; pause = Math.min(AGAIN.longest, 2 * pause)) {
      const said = await connection
        .run(redis => this.#ask('nodes' in redis ? redis.nodes('master') : [redis]))
        .catch((error: Error) => error)
      // The connection was lost after the question was sent, so the answer is outdated.
      if (look !== this.#looks) return
      if (said !== 'loading') {
        this.#learn(said)
        if (!this.useless) break
      }
      await this.#pause(said === 'loading' ? LOADING : pause)
    }
    for (;;) {
      const left = this.wait
      if (left === 0) return
      await this.#pause(Math.min(left + 1, CHECK))
      this.#listener.changed()
    }
  }

  #learn(said: Account | Error): void {
    this.#account = undefined
    if (said instanceof Error) {
      const why = `the client cannot tell whether the server was restarted, so its votes do not count: ${said.message}`
      this.useless = new Error(why, { cause: said })
    } else {
      if (said.copies !== undefined) this.#copiedUntil = this.#clock.now()
      this.#account = { ...said, since: Math.max(said.since, this.#copiedUntil) }
      const doubled = this.#doubled(said)
      this.useless =
        doubled === undefined ? undefined : new Error(`the server is ${doubled}, so its votes do not count`)
    }
    this.#listener.changed()
  }

  #doubled({ copies, runs }: Account): string | undefined {
    if (copies !== undefined) return `a replica of ${copies}`
    const twin = this.#listener.twin(runs)
    return twin && `the same one as ${twin}`
  }

  /** Resolves after `ms`; never, if the server is lost or asked anew before. */
  #pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      this.#timer = this.#clock.after(ms, resolve)
    })
  }

  /** The time from which the votes count; ∞: unknown. */
  get #countsFrom(): number {
    if (!this.#account || this.useless) return Number.POSITIVE_INFINITY
    return this.#account.since + this.#longest * (1 + DRIFT)
  }

  /**
   * Returns what the servers report, or 'loading'. While a server loads its data after a restart, it says that it does
   * not persist writes, even if it does.
   */
  async #ask(masters: readonly Redis[]): Promise<Account | 'loading'> {
    const accounts = await Promise.all(
      masters.map(async (redis): Promise<Account | 'loading'> => {
        const [server, persistence, replication, fsync] = await Promise.all([
          redis.info('server'),
          redis.info('persistence'),
          redis.info('replication'),
          // If the client's Redis user may not call CONFIG, the value of `appendfsync` is unknown. Then the server
          // counts as one that may lose data.
          redis.config('GET', 'appendfsync').catch(() => []) as Promise<string[]>,
        ])
        const uptime = Number(/uptime_in_seconds:(\d+)/.exec(server)?.[1] ?? 0)
        if (/^loading:1/m.test(persistence)) return 'loading'
        const persists = /aof_enabled:1/.test(persistence) && fsync.includes('always')
        const [, host, port] = /^role:(?:slave|replica)\s+master_host:(.*)\s+master_port:(\d+)/m.exec(replication) ?? []
        return {
          // Redis computes its uptime from whole seconds: if it starts at 10.9 s and answers at 12.1 s, it reports 2 s.
          // So the uptime may be one second too long.
          since: persists ? Number.NEGATIVE_INFINITY : this.#clock.now() - Math.max(0, (uptime - 1) * 1000),
          runs: /^run_id:(\w+)/m.exec(server)?.slice(1) ?? [],
          copies: host && `${host.trim()}:${port}`,
        }
      }),
    )
    const loaded = accounts.filter(account => account !== 'loading')
    if (loaded.length < accounts.length) return 'loading'
    return {
      since: Math.max(...loaded.map(({ since }) => since)),
      runs: loaded.flatMap(({ runs }) => runs),
      copies: loaded.find(({ copies }) => copies)?.copies,
    }
  }
}

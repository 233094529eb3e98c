/**
 * One of the servers of a quorum: its connections, its mutex, and whether its votes count (`Standing`). At the end,
 * `Openings` counts the servers' messages that a lock is free.
 */
import type { Redis } from 'ioredis'
import { awake, type Clock, type Timer } from '../../clock.ts'
import { LockConnectionError, LockError } from '../../errors.ts'
import type { Kind, Voting } from '../../kind.ts'
import type { LockState } from '../../kinds/state.ts'
import type { Connection } from '../../redis/connection.ts'
import type { Keys } from '../../redis/keys.ts'
import type { Server } from '../../redis/server.ts'

/**
 * A server that leaves requests unanswered and sends nothing for this many ms is reported as unusable. If a request has
 * been unanswered for so long, further requests are kept back (`Member.keep`).
 */
const SILENT = 500
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
  /** The latest time at which the server may have started, in ms of this client's clock. */
  readonly since: number
  readonly persists: boolean
}

/** How long the client waits before it asks a server again that is still loading its data, in ms. */
const LOADING = 100

/** The largest factor by which a server's clock may run faster than this client's clock. */
const DRIFT = 1.01

export class Member {
  readonly index: number
  readonly server: Server
  readonly standing: Standing
  /** Why there is no connection; undefined: one is being made, and will probably be up soon. */
  down: Error | undefined
  /** How often a connection was lost or could not be made. Each time, the server may have been restarted. */
  epoch = 0
  readonly #clock: Clock
  readonly #outageTimeout: number
  /** The requests that are kept back, oldest first. */
  readonly #kept = new Set<Kept>()
  #timer: Timer | undefined

  constructor(index: number, server: Server, standing: Standing, clock: Clock, outageTimeout: number) {
    this.index = index
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
    const { rejects, up, lag } = this.server.link.commands
    return !rejects && (!up || lag > SILENT)
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
      if (outOfReach) kept.failed(new LockConnectionError('the server was out of reach', reasonOf(this)))
      else kept.send()
    }
    this.#timer?.cancel()
    this.#timer = this.#recheckLater()
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
    return this.server.link.commands.rejects
  }

  /** Whether there is no connection now, and the last one ended or could not be made. */
  get away(): boolean {
    return !this.up && this.down !== undefined
  }

  /**
   * `host:port` or a path. Undefined for a cluster and for a server behind sentinels, because they have several
   * addresses.
   */
  get address(): string | undefined {
    const { redis } = this.server.link.commands
    if ('nodes' in redis || redis.options.sentinels) return undefined
    const { path, host, port } = redis.options
    return path || `${host}:${port}`
  }

  /** Records that the connection has ended, or could not be made. `brief`: the next one will probably be up at once. */
  lost(error: Error, brief: boolean): void {
    this.down = brief ? undefined : error
    this.epoch += 1
    this.standing.forget()
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
    const { trouble } = this.server
    if (trouble) return trouble
    const { silence } = this.server.link.commands
    return silence > SILENT ? new Error(`the server has not answered for ${Math.round(silence)} ms`) : undefined
  }
}

/** Returns why this server has not answered. */
export function reasonOf({ problem }: Member): Error {
  return problem ?? new Error('the server has not answered')
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
  readonly voting: Voting
  readonly keys: Keys
}

/**
 * Decides whether the votes of a server count. A server that was restarted without its data no longer knows the holders
 * of its locks, so its vote could give a second holder a majority (I1):
 *
 *   A holds the lock on servers 1 and 2. Server 2 comes back empty. Servers 2 and 3 grant the lock to B: two holders.
 *
 * So a server's votes do not count until all leases that it may have granted before its start have ended. That is
 * certain once the server has been up for longer than the longest lease of this client. The votes count at once if the
 * server reports that it writes each change to disk before it answers, because such a server loses nothing.
 */
export class Standing {
  readonly #clock: Clock
  readonly #longest: () => number
  #account: Account | undefined
  #looks = 0
  /** Why the server's report could not be read. */
  #error: Error | undefined

  /** `longest`: the longest lease of this client, in ms. */
  constructor(clock: Clock, longest: () => number) {
    this.#clock = clock
    this.#longest = longest
  }

  /** Whether the server's votes count now; undefined: the server has not reported about itself yet. */
  get counts(): boolean | undefined {
    if (this.#error) return false
    return this.#account && this.wait === 0
  }

  /** Returns whether the server's votes counted already at `time`, according to its latest report. */
  countedAt(time: number): boolean {
    if (!this.#account) return false
    const { since, persists } = this.#account
    return persists || since + this.#longest() * DRIFT <= time
  }

  /** How many ms it takes until the server's votes count; 0: they count now. */
  get wait(): number {
    if (!this.#account) return Number.POSITIVE_INFINITY
    const { since, persists } = this.#account
    return persists ? 0 : Math.max(0, since + this.#longest() * DRIFT - this.#clock.now())
  }

  /** Why the server's votes do not count. */
  get reason(): Error {
    if (this.#error) {
      const { message } = this.#error
      return new Error(
        `the client cannot tell whether the server was restarted, so its votes do not count: ${message}`,
        {
          cause: this.#error,
        },
      )
    }
    const needs = `so its votes count only after another ${Math.ceil(this.wait)} ms, when all earlier leases have ended`
    return new Error(
      `the server may have restarted without its data, ${needs}; with appendfsync always, they would count immediately`,
    )
  }

  /** Forgets the server's report. Called when the connection is lost, because the server may have been restarted. */
  forget(): void {
    this.#looks += 1
    this.#account = this.#error = undefined
  }

  /** Asks the server about its uptime and persistence. Resolves when it has answered, or the question has failed. */
  async look(connection: Connection): Promise<void> {
    this.forget()
    return this.#learn(connection, this.#looks)
  }

  async #learn(connection: Connection, look: number): Promise<void> {
    const [account, error] = await connection
      .run(redis => this.#ask('nodes' in redis ? redis.nodes('master') : [redis]))
      .then(
        said => [said, undefined] as const,
        refused => [undefined, refused as Error] as const,
      )
    // The connection was lost after the question was sent, so the answer is outdated.
    if (look !== this.#looks) return
    if (account === 'loading') {
      await new Promise<void>(resolve => this.#clock.after(LOADING, resolve))
      return look === this.#looks ? this.#learn(connection, look) : undefined
    }
    this.#account = account
    this.#error = error
  }

  /**
   * Returns what the servers report, or 'loading'. While a server loads its data after a restart, it says that it does
   * not persist writes, even if it does.
   */
  async #ask(masters: readonly Redis[]): Promise<Account | 'loading'> {
    const accounts = await Promise.all(
      masters.map(async redis => {
        const [server, persistence, fsync] = await Promise.all([
          redis.info('server'),
          redis.info('persistence'),
          // If the client's Redis user may not call CONFIG, the value of `appendfsync` is unknown. Then the server
          // counts as one that may lose data.
          redis.config('GET', 'appendfsync').catch(() => []) as Promise<string[]>,
        ])
        const uptime = Number(/uptime_in_seconds:(\d+)/.exec(server)?.[1] ?? 0)
        if (/^loading:1/m.test(persistence)) return 'loading'
        const persists = /aof_enabled:1/.test(persistence) && fsync.includes('always')
        // Redis computes its uptime from whole seconds: if it starts at 10.9 s and answers at 12.1 s, it reports 2 s.
        // So the uptime may be one second too long.
        return { since: this.#clock.now() - Math.max(0, (uptime - 1) * 1000), persists }
      }),
    )
    const loaded = accounts.filter(account => account !== 'loading')
    if (loaded.length < accounts.length) return 'loading'
    return {
      since: Math.max(...loaded.map(({ since }) => since)),
      persists: loaded.every(({ persists }) => persists),
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
export class Openings {
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

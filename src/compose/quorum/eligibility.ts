/**
 * Does the vote of a server count (`Eligibility`), and which token may it issue (`Floor`)?
 *
 * A server that was restarted without its data no longer knows the holders of its locks, so its vote could give a second
 * holder a majority (I1):
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
import type { Redis } from 'ioredis'
import type { Clock, Timer } from '../../clock.ts'
import type { Connection } from '../../redis/connection.ts'

/** How far the clocks of a server and of this client may drift apart, as a fraction of the time that passes. */
export const DRIFT = 0.01

/** How long the client waits before it asks a server again that is still loading its data, in ms. */
const LOADING = 100
/** The first and the longest pause before a server is asked again that has not said whether its votes count, in ms. */
const AGAIN = { first: 100, longest: 5_000 }
/** While the votes of a server do not count yet, it is told this often how long that will last, in ms. */
const CHECK = 1_000

/** What a server reports about itself. */
interface Account {
  /** The latest time at which the server may have lost data, in ms of this client's clock. −∞: it loses none. */
  readonly since: number
  /** The id that the server has given itself at its start. A cluster has one for each master. */
  readonly runs: readonly string[]
  /** The server that this one copies, if it is a replica. */
  readonly copies: string | undefined
}

export interface EligibilityListener {
  /** Called when the server has reported about itself, and while its votes do not count yet. */
  changed(): void
  /** Returns the name of another server that has given itself one of these ids, so that both are the same. */
  twin(runs: readonly string[]): string | undefined
}

export class Eligibility {
  readonly #clock: Clock
  readonly #longest: number
  readonly #listener: EligibilityListener
  #account: Account | undefined
  #looks = 0
  /** Why no vote of the server counts, and no time is known after which they will. */
  useless: Error | undefined
  /** When the server was last known as a replica. As a replica, it has lost the votes that it gave before. */
  #copiedUntil = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined

  /** `longest`: the longest lease of the clients, in ms. */
  constructor(clock: Clock, longest: number, listener: EligibilityListener) {
    this.#clock = clock
    this.#longest = longest
    this.#listener = listener
  }

  /** Whether the server's votes count now; undefined: the server has not reported about itself yet. */
  get counts(): boolean | undefined {
    if (this.useless) return false
    return this.#account && this.wait === 0
  }

  /** How many ms it takes until the server's votes count; 0: they count now. */
  get wait(): number {
    if (!this.#account || this.useless) return Number.POSITIVE_INFINITY
    return Math.max(0, this.#account.since + this.#longest * (1 + DRIFT) - this.#clock.now())
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

/** How far the floor is ahead of the fastest clock when a request arrives at a server, in µs. */
const AHEAD = 5_000
/** The same for requests that are slower than a reading of the clock was, as a fraction of its round trip. */
const LATE = 0.1
/** The longest round trip that is added to the floor, in ms. Otherwise a slow answer would make the floor too high. */
const SLOWEST = 400
/** How long after a reading the clocks are read again, when a request is sent, in ms. */
const REREAD = 5_000
/**
 * How long a reading is used if no newer one of this server arrives, in ms. If the client makes a call after a pause,
 * there is no newer one yet.
 */
const MEMORY = 600_000

interface Reading {
  /**
   * The server's clock in the answer, minus this client's clock when the answer arrived, in µs. The true difference is
   * larger by the time for which the answer was under way. That time is at most the round trip.
   */
  readonly ahead: number
  /** The round trip of the reading, in ms, at most SLOWEST. */
  readonly took: number
  readonly at: number
}

/**
 * The floor for tokens and tickets: a time, in µs, slightly ahead of the clocks of all servers. Each request contains
 * the floor, and each server then issues exactly this number. So all servers issue the same number: a grant needs no
 * second round trip, and all queues have the same order.
 *
 * If the floor is too low, a grant needs a second round trip. So the floor is ahead by the longest way to a server, even
 * if that takes hundreds of ms. If the floor is too high, a client's tickets are later than those of other clients that
 * ask after it, and tokens are far ahead of the time of day. A server that has lost its data continues from the time of
 * day, so its next token would be smaller than an earlier one (I2).
 *
 * The floor follows the servers' time of day, never the tokens that they issue. Tokens are ahead of the time of day
 * because of earlier floors. If two clients computed their floors from each other's tokens, the tokens would move
 * further and further into the future.
 */
export class Floor {
  readonly #now: () => number
  /** The latest reading of each server, and the one before if it is recent. */
  readonly #readings: (readonly Reading[])[]
  readonly #read: () => void
  #asked = Number.NEGATIVE_INFINITY

  /** `read` starts to read the clocks of the servers, and calls `reading` for each answer. */
  constructor(now: () => number, servers: number, read: () => void) {
    this.#now = now
    this.#readings = new Array(servers).fill([])
    this.#read = read
  }

  /** The floor for a request that is sent now, in µs; 0: no server's clock is known. */
  get next(): number {
    const now = this.#now()
    if (now - this.#asked >= REREAD) {
      this.#asked = now
      this.#read()
    }
    let ahead = Number.NEGATIVE_INFINITY
    for (const [newest, before] of this.#readings) {
      if (!newest || now - newest.at >= MEMORY) continue
      // The quicker reading is the more precise one.
      const quicker = before && before.took < newest.took ? before : newest
      ahead = Math.max(ahead, quicker.ahead + quicker.took * 1000 * (1 + LATE))
    }
    return ahead === Number.NEGATIVE_INFINITY ? 0 : Math.ceil(now * 1000 + ahead) + AHEAD
  }

  /** Records a server's clock, in µs, from the answer to a request sent at `sent`. */
  reading(server: number, clock: number, sent: number): void {
    const at = this.#now()
    const [before] = this.#readings[server] ?? []
    const newest = { ahead: clock - at * 1000, took: Math.min(at - sent, SLOWEST), at }
    this.#readings[server] = before && at - before.at < 2 * REREAD ? [newest, before] : [newest]
  }
}

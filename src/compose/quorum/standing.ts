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
import type { Redis } from 'ioredis'
import type { Clock } from '../../clock.ts'
import type { Connection } from '../../redis/connection.ts'

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

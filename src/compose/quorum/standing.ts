/**
 * Whether the votes of a server count. One that was started again with nothing has forgotten who holds what: with its help a second
 * holder could have a majority. Until all leases that it may have granted before have ended, its votes do not count (I1):
 *
 *   A holds on servers 1 and 2, and server 2 comes back empty. B is granted the lock by 2 and 3: two holders.
 *
 * So a server counts once it has been up for longer than the longest lease of this client, or at once if it says that it loses nothing:
 * that it writes each change to its disk before it answers.
 */
import type { Redis } from 'ioredis'
import { LockConnectionError } from '../../errors.ts'
import type { Connection } from '../../redis/connection.ts'

/** What a server says of itself. */
interface Account {
  /** When it was started at the latest, in ms of our clock. */
  readonly since: number
  readonly persists: boolean
}

/** A server's clock and ours may differ by so much. */
const DRIFT = 1.01

export class Standing {
  readonly #now: () => number
  readonly #longest: () => number
  #account: Account | undefined
  #looks = 0
  /** Why it is not known. */
  #error: Error | undefined

  /** `longest`: the longest lease, in ms. */
  constructor(now: () => number, longest: () => number) {
    this.#now = now
    this.#longest = longest
  }

  /** Undefined: it has not said yet. */
  get counts(): boolean | undefined {
    if (this.#error) return false
    return this.#account && this.wait === 0
  }

  /** Its votes counted at this time already, although it has said so only since. */
  countedAt(time: number): boolean {
    if (!this.#account) return false
    const { since, persists } = this.#account
    return persists || since + this.#longest() * DRIFT <= time
  }

  /** For how many ms its votes do not count yet. */
  get wait(): number {
    if (!this.#account) return Number.POSITIVE_INFINITY
    const { since, persists } = this.#account
    return persists ? 0 : Math.max(0, since + this.#longest() * DRIFT - this.#now())
  }

  /** Why its votes do not count. */
  get reason(): Error {
    if (this.#error)
      return new LockConnectionError('its votes do not count, because its uptime could not be read', this.#error)
    const needs = `its votes count in ${Math.ceil(this.wait)} ms, when all earlier leases have ended`
    return new Error(`it may have restarted without its data: ${needs} (at once with appendfsync always)`)
  }

  /** The connection is gone: what comes next may have been started anew. */
  forget(): void {
    this.#looks += 1
    this.#account = this.#error = undefined
  }

  /** Resolves when it has said, or refused to. */
  async look(connection: Connection): Promise<void> {
    this.forget()
    const look = this.#looks
    const [account, error] = await connection
      .run(redis => this.#ask('nodes' in redis ? redis.nodes('master') : [redis]))
      .then(
        said => [said, undefined] as const,
        refused => [undefined, refused as Error] as const,
      )
    // A later connection has been asked since.
    if (look !== this.#looks) return
    this.#account = account
    this.#error = error
  }

  async #ask(masters: readonly Redis[]): Promise<Account> {
    const accounts = await Promise.all(
      masters.map(async redis => {
        const [server, persistence, fsync] = await Promise.all([
          redis.info('server'),
          redis.info('persistence'),
          // Whoever may not ask waits.
          redis.config('GET', 'appendfsync').catch(() => []) as Promise<string[]>,
        ])
        const uptime = Number(/uptime_in_seconds:(\d+)/.exec(server)?.[1] ?? 0)
        const persists = /aof_enabled:1/.test(persistence) && fsync.includes('always')
        return { since: this.#now() - uptime * 1000, persists }
      }),
    )
    return {
      since: Math.max(...accounts.map(({ since }) => since)),
      persists: accounts.every(({ persists }) => persists),
    }
  }
}

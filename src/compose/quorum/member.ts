/** One of the servers of a quorum: its connections, and whether its votes count. */
import { LockConnectionError, LockError } from '../../errors.ts'
import type { Server } from '../../redis/server.ts'
import type { Standing } from './standing.ts'

/** A server that has unanswered requests and sends nothing for this long, in ms, is reported as unusable. */
const SILENT = 500

export class Member {
  readonly index: number
  readonly server: Server
  readonly standing: Standing
  /** Why the last connection ended or could not be made; undefined: neither has happened yet. */
  down: Error | undefined
  /** How many connections have ended. After each of them, the server may have been restarted. */
  epoch = 0

  constructor(index: number, server: Server, standing: Standing) {
    this.index = index
    this.server = server
    this.standing = standing
  }

  get up(): boolean {
    return this.server.up
  }

  /** The last connection ended or could not be made, and there is none now. */
  get away(): boolean {
    return !this.up && this.down !== undefined
  }

  /** `host:port` or a path; undefined: it has more than one address, as a cluster or behind sentinels. */
  get address(): string | undefined {
    const { redis } = this.server.link.commands
    if ('nodes' in redis || redis.options.sentinels) return undefined
    const { path, host, port } = redis.options
    return path || `${host}:${port}`
  }

  /** The connection has ended, or could not be made. */
  lost(error: Error): void {
    this.down = error
    this.epoch += 1
    this.standing.forget()
  }

  /** Its votes count now. */
  get counts(): boolean {
    return this.standing.counts === true
  }

  /**
   * Whether votes that it is asked for now may count: they may while it has not reported yet for how long it has been
   * up.
   */
  get mayCount(): boolean {
    return this.up && this.standing.counts !== false
  }

  /** Why it cannot be used now; undefined: it can. */
  get problem(): Error | undefined {
    if (!this.up) return this.down ?? new Error('not connected yet')
    if (this.standing.counts === false) return this.standing.reason
    const { trouble } = this.server
    if (trouble) return trouble
    const { silence } = this.server.link.commands
    return silence > SILENT ? new Error(`no answer for ${Math.round(silence)} ms`) : undefined
  }
}

/** Why this server has not answered. */
export function reasonOf({ problem }: Member): Error {
  return problem ?? new Error('no answer')
}

/**
 * Says that no majority has answered, with the reason of each server that has not; undefined: this one has answered.
 */
export function noMajority(reasons: readonly (Error | undefined)[]): LockError {
  const { length } = reasons
  // An error that is not about a connection, such as LockClosedError, is the same for all servers.
  const own = reasons.find(reason => reason instanceof LockError && !(reason instanceof LockConnectionError))
  if (own) return own as LockError
  const errors = reasons.flatMap((error, i) =>
    error ? [new LockConnectionError(`server ${i + 1} of ${length}`, causeOf(error))] : [],
  )
  const answered = `${length - errors.length} of ${length} answered`
  return new LockConnectionError("no majority of the quorum's servers", new AggregateError(errors, answered))
}

/** The error from the server or the socket, where it is known. */
function causeOf(error: Error): Error {
  return error instanceof LockConnectionError && error.cause instanceof Error ? error.cause : error
}

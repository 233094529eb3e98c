/** One of the servers of a quorum: its connections, and whether its votes count. */
import { LockConnectionError, LockError } from '../../errors.ts'
import type { Server } from '../../redis/server.ts'
import type { Standing } from './standing.ts'

/** A server that leaves requests unanswered and sends nothing for this many ms is reported as unusable. */
const SILENT = 500

export class Member {
  readonly index: number
  readonly server: Server
  readonly standing: Standing
  /** Why the last connection ended or could not be made; undefined: neither has happened yet. */
  down: Error | undefined
  /** How many connections have ended or could not be made. After each of them, the server may have been restarted. */
  epoch = 0

  constructor(index: number, server: Server, standing: Standing) {
    this.index = index
    this.server = server
    this.standing = standing
  }

  get up(): boolean {
    return this.server.up
  }

  /** Whether there is no connection now, and the last one ended or could not be made. */
  get away(): boolean {
    return !this.up && this.down !== undefined
  }

  /** `host:port` or a path; undefined: a cluster, or a server behind sentinels, has more than one address. */
  get address(): string | undefined {
    const { redis } = this.server.link.commands
    if ('nodes' in redis || redis.options.sentinels) return undefined
    const { path, host, port } = redis.options
    return path || `${host}:${port}`
  }

  /** Records that the connection has ended, or could not be made. */
  lost(error: Error): void {
    this.down = error
    this.epoch += 1
    this.standing.forget()
  }

  /** Whether this server's votes count now. */
  get counts(): boolean {
    return this.standing.counts === true
  }

  /**
   * Whether this server's votes may count now: they do, or the server has not yet reported for how long it has been up.
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
 * Returns the error that no majority has answered. `reasons`: why each server has not; undefined: it has answered.
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

/** Returns the error from the server or the socket, if it is known. */
function causeOf(error: Error): Error {
  return error instanceof LockConnectionError && error.cause instanceof Error ? error.cause : error
}

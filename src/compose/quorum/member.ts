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
  /** Why there is no connection; undefined: one is being made, and will probably be up soon. */
  down: Error | undefined
  /** How often a connection was lost or could not be made. Each time, the server may have been restarted. */
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

  /** Whether this server's votes count now (standing.ts). */
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

/** One of the servers of a quorum: the ways to it, and whether its votes count. */
import { LockConnectionError, LockError } from '../../errors.ts'
import type { Server } from '../../redis/server.ts'
import type { Standing } from './standing.ts'

/** A server that answers to nothing for so many ms, although it is asked, is said to be silent. */
const SILENT = 500

export class Member {
  readonly index: number
  readonly server: Server
  readonly standing: Standing
  /** Why there is no connection; undefined: there has been none yet. */
  down: Error | undefined
  /** How many connections have ended. Behind each may be a server that was started anew. */
  epoch = 0

  constructor(index: number, server: Server, standing: Standing) {
    this.index = index
    this.server = server
    this.standing = standing
  }

  get up(): boolean {
    return this.server.up
  }

  /** A connection was lost, or could not be made, and there has been none since. */
  get away(): boolean {
    return !this.up && this.down !== undefined
  }

  /** Where it is; undefined: not only at one address. */
  get address(): string | undefined {
    const { redis } = this.server.link.commands
    if ('nodes' in redis || redis.options.sentinels) return undefined
    const { path, host, port } = redis.options
    return path || `${host}:${port}`
  }

  /** The connection is gone. */
  lost(error: Error): void {
    this.down = error
    this.epoch += 1
    this.standing.forget()
  }

  /** Its votes count now. */
  get counts(): boolean {
    return this.standing.counts === true
  }

  /** Its votes may count by the time when they come: it has not been asked how long it has been up. */
  get mayCount(): boolean {
    return this.up && this.standing.counts !== false
  }

  /** Why it is of no use now; undefined: it is. */
  get problem(): Error | undefined {
    if (!this.up) return this.down ?? new Error('not connected yet')
    if (this.standing.counts === false) return this.standing.reason
    const { trouble } = this.server
    if (trouble) return trouble
    const { silence } = this.server.link.commands
    return silence > SILENT ? new Error(`no answer for ${Math.round(silence)} ms`) : undefined
  }
}

/** One that has not answered is away, or somebody has it wait. */
export function reasonOf({ problem }: Member): Error {
  return problem ?? new Error('no answer')
}

/** Why no majority has answered: with the reason of each server that has not. Undefined ones have. */
export function noMajority(reasons: readonly (Error | undefined)[]): LockError {
  const { length } = reasons
  // What is no matter of a connection is the same for all.
  const own = reasons.find(reason => reason instanceof LockError && !(reason instanceof LockConnectionError))
  if (own) return own as LockError
  const errors = reasons.flatMap((error, i) =>
    error ? [new LockConnectionError(`server ${i + 1} of ${length}`, causeOf(error))] : [],
  )
  const answered = `${length - errors.length} of ${length} answered`
  return new LockConnectionError("no majority of the quorum's servers", new AggregateError(errors, answered))
}

/** What the server or the socket has said, where that is known. */
function causeOf(error: Error): Error {
  return error instanceof LockConnectionError && error.cause instanceof Error ? error.cause : error
}

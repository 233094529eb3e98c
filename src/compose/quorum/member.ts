/** One of the servers of a quorum: its connections, the requests that wait until it can be reached, and its mutex. */
import { awake, type Clock, type Timer } from '../../clock.ts'
import { LockClosedError, LockConnectionError, LockError } from '../../errors.ts'
import type { VotingKind } from '../../kind.ts'
import type { LockState } from '../../kinds/state.ts'
import type { Keys } from '../../redis/keys.ts'
import type { Server } from '../../redis/server.ts'
import type { Eligibility } from './eligibility.ts'

/** A server that leaves requests unanswered and sends nothing for this many ms is reported as unusable. */
const SILENT = 500
/** If a request has been unanswered for this many ms, further requests are kept back (`Member.whenReady`). */
const BEHIND = 1_000
/** How often a server that leaves requests unanswered is checked again, in ms. */
const RECHECK = 100

/** What a request is for: a `vote` counts only if the server's votes do (`Eligibility`), and is worth nothing before. */
export type Wanted = 'answer' | 'vote'

/** A request that is kept back. */
interface Kept {
  readonly since: number
  readonly wanted: Wanted
  readonly turn: (error?: Error) => void
}

export class Member {
  readonly index: number
  /** The server's number and address, for errors and events. */
  readonly name: string
  readonly server: Server
  readonly eligibility: Eligibility
  /** The mutex on this server, and the names of its locks there. `Quorum.make` sets both. */
  kind!: VotingKind<LockState>
  keys: Keys | undefined
  /** Why there is no connection; undefined: one is being made, and will probably be up soon. */
  down: Error | undefined
  /** How often a connection was lost or could not be made. Each time, the server may have been restarted. */
  epoch = 0
  /** The server's refusal of the latest request that it has answered. */
  refusal: Error | undefined
  /** The problems that have been reported since the server was last connected (`isNews`). */
  readonly #told = new Set<string>()
  readonly #clock: Clock
  readonly #outageTimeout: number
  /** The requests that are kept back, oldest first, by what they are for. */
  readonly #kept = new Map<object, Kept>()
  #timer: Timer | undefined

  constructor(
    index: number,
    name: string,
    server: Server,
    eligibility: Eligibility,
    clock: Clock,
    outageTimeout: number,
  ) {
    this.index = index
    this.name = name
    this.server = server
    this.eligibility = eligibility
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
   * Calls `turn` when the server can be asked: at once, or later. So requests do not pile up in front of an absent server,
   * and nothing has to be taken back from it when their callers no longer need its answer. And a server that may have
   * forgotten its holders is asked for no vote before its votes count. Calls `turn` with an error if the server is never
   * to be asked, or cannot be asked for `outageTimeout` (I6).
   */
  whenReady(what: object, wanted: Wanted, turn: (error?: Error) => void): void {
    const useless = wanted === 'vote' && this.repeats
    if (useless || this.#isReady(wanted)) return turn(useless ? reasonOf(this) : undefined)
    this.#kept.set(what, { since: this.#clock.now(), wanted, turn })
    this.#timer ??= this.#recheckLater()
  }

  #isReady(wanted: Wanted): boolean {
    return !this.outOfReach && (wanted === 'answer' || this.rejects || this.counts === true)
  }

  /** Whether this request is kept back, and not for a moment: the server is away, or its votes do not count yet. */
  keeps(what: object): boolean {
    return this.#kept.has(what) && !this.mayCount
  }

  /** Drops a request that is kept back. Returns whether there was one. */
  drop(what: object): boolean {
    return this.#kept.delete(what)
  }

  /** Sends the requests that were kept back, if the server can be asked now. */
  recheck(): void {
    const now = this.#clock.now()
    for (const [what, { since, wanted, turn }] of [...this.#kept]) {
      const ready = this.#isReady(wanted)
      const over = now - since >= this.#outageTimeout || (wanted === 'vote' && this.repeats)
      if ((ready || over) && this.#kept.delete(what)) turn(ready ? undefined : reasonOf(this))
    }
    this.#timer?.cancel()
    this.#timer = this.#recheckLater()
  }

  /** Closes the connections. Requests that are kept back fail, so that no timer is left (I7). */
  close(): void {
    this.eligibility.forget()
    this.server.close()
    this.#timer?.cancel()
    const kept = [...this.#kept.values()]
    this.#kept.clear()
    for (const { turn } of kept) turn(new LockClosedError())
  }

  #recheckLater(): Timer | undefined {
    const [oldest] = this.#kept.values()
    if (!oldest) return undefined
    const left = oldest.since + this.#outageTimeout - this.#clock.now()
    return this.#clock.after(this.up && this.outOfReach ? RECHECK : left, () => this.recheck())
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
    this.eligibility.forget()
  }

  /** Records that there is a connection again. */
  connected(): void {
    this.#told.clear()
    // What was refused on the former connection need not be refused on this one.
    this.refusal = undefined
    this.recheck()
    this.eligibility.look(this.server.commands)
  }

  /** Returns whether a problem of this server has to be reported, and records that it was. */
  isNews(problem: Error): boolean {
    const kind = kindOf(problem) as string
    return !this.#told.has(kind) && this.#told.add(kind) !== undefined
  }

  /** Whether this server repeats the votes of another one (`Eligibility`). */
  get repeats(): boolean {
    return this.eligibility.repeats
  }

  /** Whether this server's votes count now; undefined: the server has not reported about itself yet. */
  get counts(): boolean | undefined {
    return this.eligibility.counts
  }

  /** Whether this server is connected and its votes may count. */
  get mayCount(): boolean {
    return this.up && this.counts !== false
  }

  /** Why calls get no vote of this server that counts, if that will last; undefined: no reason is known. */
  get trouble(): Error | undefined {
    return (this.away ? this.down : this.eligibility.useless) ?? this.refusal
  }

  /** Why this server cannot be used now; undefined: it can be used. */
  get problem(): Error | undefined {
    if (!this.up) return this.down ?? new Error('the client has not connected to this server yet; check the address')
    if (this.counts === false) return this.eligibility.reason
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

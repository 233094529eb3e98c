/**
 * One connection to Redis that the rest of the library may treat as always there.
 *
 * ioredis can reconnect and re-send by itself, but with its defaults a command that was in flight when the socket
 * dropped is executed twice, and without re-sending its promise may never settle. So here it does neither: a lost
 * connection rejects at once what was in flight, and the loop below connects again.
 *
 * A call is then in one of four states:
 *
 *      run ──▶ waiting for the connection ◀───────────────┐
 *                 │ up                                     │ outcome unknown: the socket failed; or not now: the
 *                 ▼                                        │ server is loading, busy, moving a slot
 *              sent ──▶ answered                           │
 *                 └───────────────────────────────────────-┘
 *                 └──▶ refused: the server's definite "no" (NOPERM, OOM, READONLY, WRONGTYPE, …)
 *
 * Both are sent again. After "unknown" that is a repetition: every script does nothing the second time, so whether the
 * first one ran does not matter, but its answer has to be read so.
 * Each call settles within `outageTimeout` of its start, whatever the network does (I6); one timer serves all of them. To explain a
 * refusal may take another call.
 * A server that stops answering on an open socket (half-open, frozen) is noticed by the age of the oldest unanswered
 * call, and its connection is torn down. Either is counted in the time that this process ran.
 *
 * Where the connection itself is refused, and will be again (password, rights, the wrong kind of server), every call is
 * rejected at once, until an attempt to connect has ended otherwise.
 */
import type { Cluster, Redis } from 'ioredis'
import { awake, type Clock, type Timer } from '../clock.ts'
import { LockClosedError, LockConnectionError } from '../errors.ts'
import type { Destination } from './destination.ts'
import { isDemoted, isFinal, isPassing, isReply, isUninvited, WrongServer } from './refusals.ts'
import type { Answer, Request } from './request.ts'
import { Writes } from './writes.ts'

/** Retry pace while the connection is up but the server says "not now", in ms. */
const PAUSE = 50
/** Connecting, with TLS and the greeting, is given this many ms at least. */
const SHORTEST_GREETING = 1_000
/** First and longest pause between attempts to connect, in ms. */
const RECONNECT = { first: 10, longest: 1_000 }

/** A call that is not settled. */
interface Call extends Answer<unknown> {
  readonly request: Request<unknown>
  /** In time that this process ran. */
  readonly begun: number
  reply: unknown
  /** When it was last sent. */
  sent: number
  /** Sent, and neither answered nor failed: never twice at a time. */
  underway: boolean
  repeated: boolean
  /** Why it is not answered yet. */
  error: Error | undefined
  resolve(outcome: unknown): void
  reject(error: unknown): void
}

export interface ConnectionListener {
  up(): void
  /** The connection is gone, or once more could not be made. */
  down(error: Error): void
}

export class Connection {
  readonly redis: Redis | Cluster
  readonly #clock: Clock
  readonly #awake: Clock
  readonly #outageTimeout: number
  readonly #answerLimit: number
  readonly #listener: ConnectionListener
  readonly #destination: Destination
  readonly #writes: Writes
  /** Calls that are not settled, oldest first. */
  readonly #calls = new Set<Call>()
  #sweep: Timer | undefined
  #reconnect: Timer | undefined
  #greeting: Timer | undefined
  #up = false
  #closed = false
  #attempts = 0
  #lastError: Error | undefined
  /** Why we have torn down the connection ourselves; what ioredis says of that is only its consequence. */
  #torn: Error | undefined
  /** Why there is no connection, where the next attempt to make one will end in the same way. */
  #refusal: Error | undefined
  /** Why the last answer was none. */
  #putOff: Error | undefined
  #unanswered = 0
  #answers = 0
  /** In time that this process ran. */
  #lastAnswer = 0

  constructor(
    redis: Redis | Cluster,
    clock: Clock,
    outageTimeout: number,
    listener: ConnectionListener,
    destination: Destination = {},
  ) {
    this.redis = redis
    this.#clock = clock
    this.#awake = awake(clock)
    this.#outageTimeout = outageTimeout
    this.#answerLimit = answerLimit(outageTimeout, 'nodes' in redis)
    this.#listener = listener
    this.#destination = destination
    this.#writes = new Writes(redis)
    redis.on('error', (error: Error & { lastNodeError?: Error }) => {
      const { lastNodeError, cause } = error
      // Said at the end of the list of sentinels, also where none of them has been tried yet.
      if (/Retrying from scratch/.test(error.message)) return
      // A cluster says that all nodes have failed. Only one that has refused says why; of the others redis/clients.ts tells.
      if (cause instanceof WrongServer) this.#lastError = cause
      else if (lastNodeError && !isReply(lastNodeError)) this.#lastError ??= lastNodeError
      else this.#lastError = lastNodeError ?? error
    })
    redis.on('ready', () => this.#greeted())
    redis.on('end', () => this.#wentDown())
  }

  get up(): boolean {
    return this.#up
  }

  /** Why nothing is answered although there is a connection, in the server's words; undefined: nothing is put off. */
  get trouble(): Error | undefined {
    return this.#putOff
  }

  /** For how many ms nothing was answered, although something was asked; 0: nothing is unanswered. */
  get silence(): number {
    return this.#unanswered > 0 ? this.#awake.now() - this.#lastAnswer : 0
  }

  /** To how many calls the server has said more than "not now". */
  get answers(): number {
    return this.#answers
  }

  /** Starts to connect, and keeps the connection until `close`. */
  open(): void {
    if (this.#closed || this.redis.status === 'connecting' || this.redis.status === 'ready') return
    this.#reconnect?.cancel()
    this.#reconnect = undefined
    this.#torn = undefined
    // ioredis limits the time for the TCP connection, but not for the answer to its greeting.
    const limit = Math.max(SHORTEST_GREETING, this.#answerLimit)
    this.#greeting = this.#awake.after(limit, () => {
      this.reset(new Error(`Redis did not complete the handshake of the connection within ${Math.round(limit)} ms`))
    })
    // A failure is told by the events 'error' and 'end'; the promise adds nothing.
    this.redis.connect().catch(() => {})
  }

  /** Tries at once, if it is in the pause before its next attempt: another connection to the same server has come up. */
  hurry(): void {
    if (this.#reconnect) this.open()
  }

  /** Runs `send` until it is answered or refused, or `outageTimeout` is over. `send` must be repeatable. */
  run<T>(send: (redis: Redis | Cluster) => Promise<T>): Promise<T> {
    return this.ask({ send, read: ({ reply }) => reply as T })
  }

  /** As `run`. Rejects with LockConnectionError or LockClosedError. */
  ask<T>(request: Request<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new LockClosedError())
    return new Promise((resolve, reject) => {
      const call: Call = {
        request,
        begun: this.#awake.now(),
        reply: undefined,
        sent: 0,
        underway: false,
        repeated: false,
        error: undefined,
        resolve: resolve as (outcome: unknown) => void,
        reject,
      }
      this.#calls.add(call)
      if (this.#refusal) return this.#fail(call, refusedBy(this.#refusal))
      this.#armSweep()
      if (this.#up) this.#send(call, call.begun)
    })
  }

  /** Whether a refusal says "not now", or "not here": then it is to be asked again. */
  passes(error: Error): boolean {
    return isPassing(error) || (this.#destination.followsMaster === true && isDemoted(error))
  }

  /** Drops the socket; the loop connects again. For a connection that is known to be deaf. */
  reset(reason: Error): void {
    // One that has ended is about to be made anew.
    if (this.#torn || this.redis.status === 'end') return
    this.#torn = reason
    // A cluster that knows no node yet does not tell that it has ended.
    const mute = 'nodes' in this.redis && this.redis.status === 'connecting' && this.redis.nodes().length === 0
    this.redis.disconnect()
    if (mute) this.#wentDown()
  }

  /** Ends the connection for good; pending calls reject with LockClosedError. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#sweep?.cancel()
    this.#reconnect?.cancel()
    this.#greeting?.cancel()
    for (const call of this.#calls) this.#fail(call, new LockClosedError())
    // On one that has ended already, ioredis would start a timer and keep the process alive for it.
    if (this.redis.status !== 'end') this.redis.disconnect()
  }

  /** `awakeNow`: by the clock of `begun`. */
  #send(call: Call, awakeNow = this.#awake.now()): void {
    if (call.underway) return
    call.underway = true
    call.sent = this.#clock.now()
    this.#writes.next()
    if (this.#unanswered++ === 0) this.#lastAnswer = awakeNow
    call.request.send(this.redis).then(
      reply => {
        this.#answered(call)
        this.#taken()
        if (this.#calls.delete(call)) this.#settle(call, reply)
      },
      error => {
        this.#answered(call)
        if (this.#calls.has(call)) this.#unknownOrRefused(call, error)
      },
    )
  }

  #answered(call: Call): void {
    call.underway = false
    this.#unanswered -= 1
    this.#lastAnswer = this.#awake.now()
  }

  #taken(): void {
    this.#answers += 1
    this.#putOff = undefined
  }

  /** A reply that cannot be read fails its own call, and nothing else. */
  #settle(call: Call, reply: unknown): void {
    call.reply = reply
    try {
      call.resolve(call.request.read(call))
    } catch (error) {
      call.reject(error)
    }
  }

  #unknownOrRefused(call: Call, error: Error): void {
    const wrong = this.#destination.betrayed?.(this.redis, error)
    if (wrong) return this.reset(wrong)
    if (isReply(error) && !this.passes(error)) {
      if (call.request.rephrase?.(error)) {
        // Without a connection, the next one takes it up.
        if (this.#up) this.#send(call)
        return
      }
      this.#taken()
      return this.#fail(call, refusedBy(error))
    }
    call.error = this.#torn ?? error
    if (isReply(error)) this.#putOff = error
    // Who says "not now" has not run it, or no more of it than a repetition makes up for.
    if (!isReply(error)) call.repeated = true
    // Without a connection, the next one takes it up.
    if (!this.#up) return
    this.#clock.after(PAUSE, () => {
      if (!this.#up || !this.#calls.has(call)) return
      // Not the reply itself: who is refused the connection gives up.
      if (isDemoted(error)) this.reset(new Error(error.message))
      else this.#send(call)
    })
  }

  #fail(call: Call, error: Error): void {
    if (!this.#calls.delete(call)) return
    const explained = error instanceof LockConnectionError && call.request.explain?.(error, this)
    if (explained instanceof Promise) call.resolve(explained)
    else call.reject(explained || error)
  }

  #greeted(): void {
    // It was closed while credentials were asked for; or ioredis says so of a connection that has ended.
    if (this.#closed) return this.redis.disconnect()
    if (this.redis.status !== 'ready') return
    const checked = this.#destination.check?.(this.redis)
    if (!checked) return this.#wentUp()
    checked.then(wrong => {
      // While it was looked at, it may have gone.
      if (this.#closed || this.redis.status !== 'ready') return
      // By then ioredis 5 has told what the server said of the password.
      if (wrong) this.reset(isUninvited(this.#lastError) ? this.#lastError : wrong)
      else this.#wentUp()
    })
  }

  #wentUp(): void {
    this.#up = true
    this.#greeting?.cancel()
    this.#attempts = 0
    this.#lastError = undefined
    this.#torn = undefined
    this.#refusal = undefined
    for (const call of this.#calls) this.#send(call)
    this.#listener.up()
  }

  #wentDown(): void {
    this.#up = false
    this.#greeting?.cancel()
    if (this.#closed) return
    const error = this.#torn ?? this.#lastError ?? new Error('the connection to Redis was closed')
    this.#putOff = undefined
    this.#refusal = isFinal(error) ? error : undefined
    if (this.#refusal) for (const call of this.#calls) this.#fail(call, refusedBy(error))
    this.#listener.down(error)
    const pause = Math.min(RECONNECT.longest, RECONNECT.first * 2 ** this.#attempts++)
    this.#reconnect = this.#clock.after(pause * (0.75 + Math.random() / 2), () => this.open())
  }

  /** Calls begin in order and have one patience, so the oldest is always the next to be given up. */
  #armSweep(): void {
    if (this.#sweep) return
    const [oldest] = this.#calls
    if (!oldest) return
    const now = this.#awake.now()
    const silentSince = this.#unanswered > 0 && !this.#torn ? this.#lastAnswer : now
    const due = Math.min(oldest.begun + this.#outageTimeout, silentSince + this.#answerLimit)
    this.#sweep = this.#awake.after(Math.max(1, due - now), () => {
      this.#sweep = undefined
      this.#giveUpOld()
      this.#armSweep()
    })
  }

  #giveUpOld(): void {
    const now = this.#awake.now()
    for (const call of this.#calls) {
      if (now - call.begun < this.#outageTimeout) break
      const error = (this.#up ? call.error : (this.#lastError ?? call.error)) ?? new Error('the command got no reply')
      const did = isReply(error) ? 'kept putting the command off' : 'did not answer'
      this.#fail(call, new LockConnectionError(`Redis ${did} for ${this.#outageTimeout} ms`, error))
    }
    if (this.#up && this.#unanswered > 0 && now - this.#lastAnswer >= this.#answerLimit) {
      this.reset(new Error(`Redis left a command unanswered for ${Math.round(now - this.#lastAnswer)} ms`))
    }
  }
}

/**
 * How long a command may be unanswered before its connection counts as dead, in ms. A third, so that there is time to
 * notice it, to connect again, and to send another. In a cluster the first command to a node waits for the greeting, too.
 */
export function answerLimit(outageTimeout: number, cluster: boolean): number {
  const least = cluster ? Math.min(SHORTEST_GREETING, (outageTimeout * 2) / 3) : 100
  return Math.min(5_000, Math.max(least, outageTimeout / 3))
}

/** The end of a call that the server refuses, or the connection for it. */
function refusedBy(error: Error): LockConnectionError {
  return error instanceof WrongServer ? error : new LockConnectionError('Redis refused', error)
}

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
 * Each call settles within `outageTimeout` of its start, whatever the network does (I6); one timer serves all of them.
 * A server that stops answering on an open socket (half-open, frozen) is noticed by the age of the oldest unanswered
 * call, and its connection is torn down.
 */
import type { Cluster, Redis } from 'ioredis'
import type { Clock, Timer } from '../clock.ts'
import { LockClosedError, LockConnectionError } from '../errors.ts'
import { Writes } from './writes.ts'

/** Server errors that pass: the same request may succeed a moment later, or on another connection. */
const passing = /^(LOADING|BUSY|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|MOVED|ASK)\b/
/** So says a server that is no master any more; behind sentinels, the next connection leads to the one that is. */
const demoted = /\bREADONLY\b|\bcannot be used with replica\b/

/** Retry pace while the connection is up but the server says "not now", in ms. */
const PAUSE = 50
/** Connecting, with TLS and the greeting, is given this many ms at least. */
const SHORTEST_GREETING = 1_000
/** First and longest pause between attempts to connect, in ms. */
const RECONNECT = { first: 10, longest: 1_000 }

export interface Answer<T> {
  readonly reply: T
  /** When the request that was answered left, on the client's monotonic clock. */
  readonly sent: number
  /** Whether an earlier sending of the same call had an unknown outcome: then its effect may be older than `sent`. */
  readonly repeated: boolean
}

/** What somebody asks of Redis. One promise stands between a request and its answer: each costs on the hot path. */
export interface Request<T> {
  /** Must be repeatable. */
  send(redis: Redis | Cluster): Promise<unknown>
  /** What the reply means. */
  read(answer: Answer<unknown>): T | Promise<T>
  /** Told that the server has refused it without doing anything. True: it has another way to ask, which `send` takes from now on. */
  rephrase?(refusal: Error): boolean
  /** The error with which it ends, where there is more to say than the connection knows. */
  explain?(error: LockConnectionError): LockConnectionError
}

/** A call that is not settled. */
interface Call extends Answer<unknown> {
  readonly request: Request<unknown>
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
  readonly #outageTimeout: number
  readonly #answerLimit: number
  readonly #listener: ConnectionListener
  readonly #followsMaster: boolean
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
  #unanswered = 0
  #lastAnswer = 0

  /** `followsMaster`: connecting again may lead to another server, because sentinels say where. */
  constructor(
    redis: Redis | Cluster,
    clock: Clock,
    outageTimeout: number,
    listener: ConnectionListener,
    followsMaster = false,
  ) {
    this.redis = redis
    this.#clock = clock
    this.#outageTimeout = outageTimeout
    this.#answerLimit = answerLimit(outageTimeout, 'nodes' in redis)
    this.#listener = listener
    this.#followsMaster = followsMaster
    this.#writes = new Writes(redis)
    redis.on('error', (error: Error & { lastNodeError?: Error }) => {
      const { lastNodeError } = error
      // Said at the end of the list of sentinels, also where none of them has been tried yet.
      if (/Retrying from scratch/.test(error.message)) return
      // A cluster says that all nodes have failed. Only one that has refused says why; of the others redis/clients.ts tells.
      if (lastNodeError && !isReply(lastNodeError)) this.#lastError ??= lastNodeError
      else this.#lastError = lastNodeError ?? error
    })
    redis.on('ready', () => this.#wentUp())
    redis.on('end', () => this.#wentDown())
  }

  get up(): boolean {
    return this.#up
  }

  /** Starts to connect, and keeps the connection until `close`. */
  open(): void {
    if (this.#closed || this.redis.status === 'connecting' || this.redis.status === 'ready') return
    this.#reconnect?.cancel()
    this.#reconnect = undefined
    this.#torn = undefined
    // ioredis limits the time for the TCP connection, but not for the answer to its greeting.
    const limit = Math.max(SHORTEST_GREETING, this.#answerLimit)
    this.#greeting = this.#clock.after(limit, () => {
      this.reset(new Error(`Redis did not answer the greeting for ${Math.round(limit)} ms`))
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
      const begun = this.#clock.now()
      const call: Call = {
        request,
        begun,
        reply: undefined,
        sent: begun,
        underway: false,
        repeated: false,
        error: undefined,
        resolve: resolve as (outcome: unknown) => void,
        reject,
      }
      this.#calls.add(call)
      this.#armSweep()
      if (this.#up) this.#send(call)
    })
  }

  /** Whether a refusal says "not now", or "not here": then it is to be asked again. */
  passes(error: Error): boolean {
    return passing.test(error.message) || (this.#followsMaster && demoted.test(error.message))
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

  #send(call: Call): void {
    if (call.underway) return
    call.underway = true
    call.sent = this.#clock.now()
    this.#writes.next()
    if (this.#unanswered++ === 0) this.#lastAnswer = call.sent
    call.request.send(this.redis).then(
      reply => {
        this.#answered(call)
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
    this.#lastAnswer = this.#clock.now()
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
    if (isReply(error) && !this.passes(error)) {
      if (call.request.rephrase?.(error)) {
        // Without a connection, the next one takes it up.
        if (this.#up) this.#send(call)
        return
      }
      return this.#fail(call, new LockConnectionError('Redis refused', error))
    }
    call.error = this.#torn ?? error
    // Who says "not now" has not run it.
    if (!isReply(error)) call.repeated = true
    // Without a connection, the next one takes it up.
    if (!this.#up) return
    this.#clock.after(PAUSE, () => {
      if (!this.#up || !this.#calls.has(call)) return
      // Not the reply itself: who is refused the connection gives up.
      if (isReply(error) && demoted.test(error.message)) this.reset(new Error(error.message))
      else this.#send(call)
    })
  }

  #fail(call: Call, error: Error): void {
    if (!this.#calls.delete(call)) return
    call.reject(error instanceof LockConnectionError ? (call.request.explain?.(error) ?? error) : error)
  }

  #wentUp(): void {
    this.#up = true
    this.#greeting?.cancel()
    this.#attempts = 0
    this.#lastError = undefined
    this.#torn = undefined
    for (const call of this.#calls) this.#send(call)
    this.#listener.up()
  }

  #wentDown(): void {
    this.#up = false
    this.#greeting?.cancel()
    if (this.#closed) return
    const error = this.#torn ?? this.#lastError ?? new Error('the connection to Redis was closed')
    if (isReply(error)) this.#refuseAll(error)
    this.#listener.down(error)
    const pause = Math.min(RECONNECT.longest, RECONNECT.first * 2 ** this.#attempts++)
    this.#reconnect = this.#clock.after(pause * (0.75 + Math.random() / 2), () => this.open())
  }

  /** A server that refuses the connection itself (password, rights) will refuse it again: nobody has to wait for that. */
  #refuseAll(error: Error): void {
    if (passing.test(error.message)) return
    for (const call of this.#calls) this.#fail(call, new LockConnectionError('Redis refused', error))
  }

  /** Calls begin in order and have one patience, so the oldest is always the next to be given up. */
  #armSweep(): void {
    if (this.#sweep) return
    const [oldest] = this.#calls
    if (!oldest) return
    const now = this.#clock.now()
    const silentSince = this.#unanswered > 0 && !this.#torn ? this.#lastAnswer : now
    const due = Math.min(oldest.begun + this.#outageTimeout, silentSince + this.#answerLimit)
    this.#sweep = this.#clock.after(Math.max(1, due - now), () => {
      this.#sweep = undefined
      this.#giveUpOld()
      this.#armSweep()
    })
  }

  #giveUpOld(): void {
    const now = this.#clock.now()
    for (const call of this.#calls) {
      if (now - call.begun < this.#outageTimeout) break
      const error = (this.#up ? call.error : (this.#lastError ?? call.error)) ?? new Error('it was left unanswered')
      this.#fail(call, new LockConnectionError(`Redis did not answer for ${this.#outageTimeout} ms`, error))
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

/** Whether it is the server's own word, and not that of the connection. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}

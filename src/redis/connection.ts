/**
 * One connection to Redis that the rest of the library can use as if it were always up. This file has the calls.
 * uplink.ts connects, and connects again.
 *
 * After `ask`, a call is in one of four states: waiting, sent, answered or refused.
 *
 *      ask ──▶ waiting for the connection ◀──┐
 *                 │ connection is up         │ "outcome unknown": the socket failed
 *                 ▼                          │ "not now": the server is loading or busy, or a slot is being moved
 *               sent ────────────────────────┘ "not here": the server is a replica now (READONLY)
 *                 ├──▶ answered
 *                 └──▶ refused: the server's definite "no" (NOPERM, OOM, WRONGTYPE, …)
 *
 * After "outcome unknown" and "not now", the call is sent again. After "outcome unknown", the server may have executed
 * the call already, and executes it a second time. That is safe, because the second execution of a script changes
 * nothing. But the code that reads the answer must know that the call was repeated (`repeated`). The calls about one lock
 * take effect in the order in which they were made (order.ts).
 *
 * Each call settles within `outageTimeout` of its start, whatever the network does (I6). One timer serves all calls. If
 * a server stops answering on an open socket (half-open, frozen), the connection is torn down after `answerLimit`. Both
 * limits count only the time in which this process ran. If the server refuses a call, further commands may be needed to
 * find the reason (`Request.explain`). These have their own `outageTimeout`.
 *
 * A load balancer may drop an idle connection without a word. So after a long pause, the first call is given `EARLY` ms
 * for its answer; without an answer, it is sent again on a new connection. There, it has all the time of other calls,
 * because the server may only be slow.
 */
import type { Cluster, Redis } from 'ioredis'
import { type AwakeClock, awake, type Clock, type Timer } from '../clock.ts'
import { LockClosedError, LockConnectionError } from '../errors.ts'
import { List, type Listed } from '../list.ts'
import { type Outcome, settle } from '../outcome.ts'
import type { Destination } from './destination.ts'
import { Order, type Sent } from './order.ts'
import { isTraced, readyCommands } from './ready-command.ts'
import { isDemoted, isPassing, isReply, isUninvited, WrongServer } from './refusals.ts'
import type { Answer, Request } from './request.ts'
import { SHORTEST_GREETING, Uplink } from './uplink.ts'
import { withoutArguments } from './without-arguments.ts'
import { Writes } from './writes.ts'

/** If the server answers "not now", the call is sent again after this pause, in ms. */
const PAUSE = 50
/** A connection on which nothing has arrived for this many ms may have been dropped without a word. */
const IDLE = 15_000
/**
 * How long the first call after `IDLE` may be unanswered, in ms. A single attempt has 1 s in all. So this leaves most of
 * that second for the second try.
 */
const EARLY = 400

/** A call that has not settled. */
interface Call extends Answer<unknown>, Sent, Listed<Call> {
  readonly request: Request<unknown>
  readonly to: Outcome<unknown>
  /** When the call was made, on a clock that counts only the time in which this process ran. */
  readonly begun: number
  reply: unknown
  /** When the call was last sent, in monotonic ms. */
  sent: number
  /** When the call was last sent, on the clock of `begun`. */
  sentAwake: number
  /** Whether the call has been sent and its outcome has not arrived yet. A call is never in flight twice. */
  underway: boolean
  repeated: boolean
  /** The latest reason why the call has no reply yet. */
  error: Error | undefined
}

export interface ConnectionListener {
  onUp?(): void
  /**
   * The connection is gone, or another attempt to connect has failed. `brief`: the connection has probably ended only
   * because it was idle, and the first attempt to connect again is still to come.
   */
  onDown?(error: Error, brief: boolean): void
  /** The server refuses to write, because it is a replica now. */
  onDemoted?(error: Error): void
  /** Returns whether a waiter or a hold depends on this connection. */
  busy?(): boolean
}

export class Connection {
  /**
   * The error with which the server last answered "not now" (loading, busy, moving a slot). Undefined: the server has
   * since given a definite answer, or the connection has gone down.
   */
  trouble: Error | undefined
  /** When the server last answered a call; −∞: never. An answer "not now" (loading, busy, moving a slot) does not count. */
  answeredAt = Number.NEGATIVE_INFINITY
  readonly redis: Redis | Cluster
  readonly uplink: Uplink
  readonly #clock: Clock
  readonly #awake: AwakeClock
  readonly #destination: Destination
  readonly #outageTimeout: number
  readonly #slowest: number
  readonly #early: number
  readonly #listener: ConnectionListener
  readonly #writes: Writes
  readonly #order = new Order<Call>()
  /** Sends a request whose text is ready; undefined before the first connection, or if this ioredis cannot. */
  #ready: ((call: Call, text: string) => void) | undefined
  /** Calls that have not settled, oldest first. */
  readonly #calls = new List<Call>()
  #sweep: Timer | undefined
  #unanswered = 0
  /**
   * The moment from which the server's silence is counted. It is set by each answer, and when a command is sent while
   * no other command is unanswered. The clock counts only the time in which this process ran.
   */
  #lastAnswer = 0
  /** When something last arrived: an answer, a message, or the confirmation of a new connection. In monotonic ms. */
  #lastSign = 0
  /** Whether nothing has arrived since the first call after `IDLE` was sent, so the connection may be dead. */
  #doubtful = false

  /** `blocks`: for how many ms the server may keep a request of this connection waiting on purpose. */
  constructor(
    redis: Redis | Cluster,
    clock: Clock,
    outageTimeout: number,
    listener: ConnectionListener,
    destination: Destination = {},
    blocks = 0,
  ) {
    const slowest = answerLimit(outageTimeout, 'nodes' in redis)
    this.redis = redis
    this.uplink = new Uplink(redis, clock, destination, slowest, {
      onUp: () => this.#wentUp(),
      onDown: (error, wasUp) => this.#wentDown(error, wasUp),
    })
    this.#clock = clock
    this.#awake = awake(clock)
    this.#destination = destination
    this.#outageTimeout = outageTimeout
    this.#slowest = slowest
    this.#early = Math.min(slowest, EARLY + blocks)
    this.#listener = listener
    this.#writes = new Writes(redis)
    redis.on('message', () => this.arrived()).on('smessage', () => this.arrived())
  }

  /** Whether commands can be sent. */
  get up(): boolean {
    return this.uplink.up
  }

  /** How many ms the server has been silent while commands were unanswered; 0 if no command is unanswered. */
  get silence(): number {
    return this.#unanswered > 0 ? this.#awake.now() - this.#lastAnswer : 0
  }

  /** For how many ms the oldest call that was sent has been unanswered; 0 if none is unanswered. */
  get lag(): number {
    const oldest = this.#calls.first
    return oldest?.underway ? this.#awake.now() - oldest.sentAwake : 0
  }

  /** Whether a new call is rejected at once: the client was closed, or the server refuses the connection for good. */
  get rejects(): boolean {
    return this.uplink.closed || this.uplink.refusal !== undefined
  }

  /** `ask` for a request that has only `send`. */
  run<T>(send: (redis: Redis | Cluster) => Promise<T>): Promise<T> {
    return this.ask({ send, read: ({ reply }) => reply as T })
  }

  /** The requests of this turn of the event loop that follow are sent in one write. */
  together(): void {
    this.#writes.together()
  }

  /**
   * Sends a request, if necessary several times, until it is answered or refused, or until `outageTimeout` has passed.
   * Rejects with LockConnectionError or LockClosedError.
   */
  ask<T>(request: Request<T>): Promise<T> {
    return new Promise((done, failed) => this.post(request, { done, failed }))
  }

  /** Does the same as `ask`, and tells the outcome to an object, later than this method returns. */
  post<T>(request: Request<T>, to: Outcome<T>): void {
    if (this.rejects) {
      const { closed, refusal } = this.uplink
      const error = closed ? new LockClosedError() : refusedBy(refusal as Error)
      return process.nextTick(() => this.#explain(request, error, to))
    }
    const now = this.#clock.now()
    const call: Call = {
      request,
      to: to as Outcome<unknown>,
      begun: this.#awake.at(now),
      reply: undefined,
      sent: 0,
      sentAwake: 0,
      place: 0,
      waits: false,
      slot: -1,
      dueAt: Number.POSITIVE_INFINITY,
      underway: false,
      repeated: false,
      error: undefined,
      list: undefined,
      before: undefined,
      after: undefined,
    }
    this.#calls.add(call)
    if (this.up) this.#send(call, now, call.begun)
    if (!this.#sweep) this.#armSweep()
  }

  /**
   * Returns whether a refused request can be sent again: the server answered "not now", or the next connection has the
   * new password, or may lead to the new master. (In a cluster, MOVED leads to the new master.)
   */
  passes(error: Error): boolean {
    return isPassing(error) || this.uplink.isOutdated(error) || (isDemoted(error) && !('nodes' in this.redis))
  }

  /** Something has arrived, so the connection works. */
  arrived(now = this.#clock.now()): void {
    this.#lastSign = now
    this.#doubtful = false
  }

  /** Ends the connection for good; pending calls reject with LockClosedError. */
  close(): void {
    this.uplink.close()
    this.#sweep?.cancel()
    this.#order.clear()
    for (const call of [...this.#calls]) this.#fail(call, new LockClosedError())
  }

  #send(call: Call, now = this.#clock.now(), awakeNow = this.#awake.at(now)): void {
    if (call.underway || !this.#order.admits(call)) return
    call.underway = true
    call.sent = now
    call.sentAwake = awakeNow
    this.#writes.next()
    if (this.#unanswered++ === 0) {
      this.#lastAnswer = call.sentAwake
      this.#doubtful = call.sent - this.#lastSign >= IDLE
    }
    const text = this.#ready && call.request.text?.()
    if (text && !isTraced()) this.#ready!(call, text)
    else
      call.request.send(this.redis).then(
        reply => this.replied(call, reply),
        error => this.refused(call, error),
      )
  }

  replied(call: Call, reply: unknown): void {
    const now = this.#answered(call)
    this.arrived(now)
    this.uplink.accepted = true
    this.answeredAt = this.#lastAnswer
    this.trouble = undefined
    const earlier = this.#order.earlier(call)
    if (earlier && this.#calls.has(call)) {
      call.repeated = true
      return this.#sendAgain(call, earlier.waits ? PAUSE : 0)
    }
    if (!this.#settle(call)) return
    call.reply = reply
    const { to } = call
    let outcome: unknown
    try {
      outcome = call.request.read(call)
    } catch (error) {
      // The reply cannot be read, or says that the request has failed. Only this call fails.
      return to.failed(error as Error)
    }
    if (outcome instanceof Promise) settle(outcome, to)
    else to.done(outcome, now)
  }

  /** The server has refused the call, or the connection was lost. */
  refused(call: Call, error: Error): void {
    const now = this.#answered(call)
    if (isReply(error)) this.arrived(now)
    if (this.#calls.has(call)) this.#unknownOrRefused(call, error)
  }

  #answered(call: Call): number {
    const now = this.#clock.now()
    call.underway = false
    this.#unanswered -= 1
    this.#lastAnswer = this.#awake.at(now)
    return now
  }

  /** Ends a call that has its outcome. Returns false if it had one before. */
  #settle(call: Call): boolean {
    for (const held of this.#order.settled(call)) this.#send(held)
    return this.#calls.delete(call)
  }

  /**
   * Sends a call again that has just been answered, after a pause in ms. If the connection is down then, `#wentUp` sends
   * the call later.
   */
  #sendAgain(call: Call, pause: number): void {
    this.#order.refused(call)
    const send = () => {
      if (!this.up || !this.#calls.has(call)) return
      if (pause > 0 && isUninvited(call.error)) this.uplink.reset(call.error)
      else this.#send(call)
    }
    if (pause > 0) this.#clock.after(pause, send)
    else send()
  }

  #unknownOrRefused(call: Call, raw: Error): void {
    const error = withoutArguments(raw)
    const wrong = this.#destination.wrongServer?.(this.redis, error)
    if (wrong) return this.uplink.reset(wrong)
    if (isReply(error) && call.request.rephrase?.(error)) return this.#sendAgain(call, 0)
    if (isReply(error) && !this.passes(error)) {
      this.answeredAt = this.#lastAnswer
      this.trouble = undefined
      return this.#fail(call, refusedBy(error))
    }
    call.error = this.uplink.torn ?? error
    if (isReply(error)) this.trouble = error
    // If the answer is "not now", the server has run nothing of the request, or only a part that the next run
    // completes. So only a failed connection sets `repeated`.
    if (!isReply(error)) call.repeated = true
    if (!this.up) return
    if (isDemoted(error)) {
      this.uplink.reset(error)
      return this.#listener.onDemoted?.(error)
    }
    this.#sendAgain(call, PAUSE)
  }

  #fail(call: Call, error: Error): void {
    if (!this.#settle(call)) return
    this.#explain(call.request, error, call.to)
  }

  #explain<T>(request: Request<T>, error: Error, to: Outcome<T>): void {
    const ofCall = error instanceof LockConnectionError && !(error instanceof WrongServer)
    const explained = ofCall && request.explain?.(error, this)
    if (explained && 'then' in explained) settle(explained, to)
    else to.failed(explained || error)
  }

  #wentUp(): void {
    this.arrived()
    this.#ready ??= readyCommands(this.redis, this)
    for (const call of [...this.#calls]) this.#send(call)
    this.#listener.onUp?.()
  }

  #wentDown(error: Error, wasUp: boolean): void {
    const { torn, refusal } = this.uplink
    const brief = wasUp && (torn ? this.#doubtful : this.#listener.busy?.() === false)
    this.#order.clear()
    this.trouble = undefined
    if (refusal) for (const call of [...this.#calls]) this.#fail(call, refusedBy(refusal))
    this.#listener.onDown?.(error, brief)
  }

  /**
   * Starts the timer for the oldest call. All calls have the same time limit, so the time of the oldest call ends
   * first.
   */
  #armSweep(): void {
    if (this.#sweep) return
    const oldest = this.#calls.first
    if (!oldest) return
    const now = this.#awake.now()
    const silentSince = this.#unanswered > 0 && !this.uplink.torn ? this.#lastAnswer : now
    const due = Math.min(oldest.begun + this.#outageTimeout, silentSince + this.#answerLimit)
    this.#sweep = this.#awake.after(Math.max(1, due - now), () => {
      this.#sweep = undefined
      this.#giveUpOld()
      this.#armSweep()
    })
  }

  /** How long a call may be unanswered before this class gives the connection up, in ms. */
  get #answerLimit(): number {
    return this.#doubtful ? this.#early : this.#slowest
  }

  #giveUpOld(): void {
    const now = this.#awake.now()
    for (const call of [...this.#calls]) {
      if (now - call.begun < this.#outageTimeout) break
      const error = (this.up ? call.error : (this.uplink.away ?? call.error)) ?? new Error('the command got no reply')
      const did = isReply(error) ? 'was not ready' : 'did not answer'
      this.#fail(call, new LockConnectionError(`Redis ${did} for ${this.#outageTimeout} ms`, error))
    }
    if (this.up && this.#unanswered > 0 && now - this.#lastAnswer >= this.#answerLimit) {
      this.uplink.reset(
        new Error(`the connection was given up after ${Math.round(now - this.#lastAnswer)} ms without a reply`),
      )
    }
  }
}

/**
 * Returns how long a command may be unanswered before its connection counts as dead, in ms. A third of `outageTimeout`
 * leaves time to notice the dead connection, to connect again, and to send again. In a cluster, the first command to a
 * node also waits for the handshake with that node.
 */
export function answerLimit(outageTimeout: number, cluster: boolean): number {
  const least = cluster ? Math.min(SHORTEST_GREETING, (outageTimeout * 2) / 3) : 100
  return Math.min(5_000, Math.max(least, outageTimeout / 3))
}

/** Returns the error for a call if the server has refused the call or the connection. */
function refusedBy(error: Error): LockConnectionError {
  return error instanceof WrongServer ? error : new LockConnectionError('Redis refused', error)
}

/**
 * One connection to Redis that the rest of the library can use as if it were always up.
 *
 * ioredis can reconnect and re-send on its own. But with its defaults, a command that was in flight when the socket
 * dropped may be executed twice. And without re-sending, the promise of a command may never settle. So here ioredis
 * neither reconnects nor re-sends. A lost connection immediately rejects all commands in flight, and this class
 * reconnects and re-sends.
 *
 * After `run`, a call is in one of four states: waiting, sent, answered or refused.
 *
 *      run ──▶ waiting for the connection ◀──┐
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
 *
 * If the server has become a replica, its address may lead to the new master by now. So all connections are made again.
 * They count as up only when a server accepts a write; until then, the pauses between the attempts grow.
 *
 * The server may refuse the connection itself for a lasting reason: the password, the rights, the database, or the
 * wrong kind of server. Then every call is rejected at once, until an attempt to connect has a different outcome. But if
 * a password was accepted before, it may only have been changed. So its refusal counts as an outage.
 */
import type { Cluster, Redis } from 'ioredis'
import { type AwakeClock, awake, type Clock, type Timer } from '../clock.ts'
import { LockClosedError, LockConnectionError } from '../errors.ts'
import type { Destination } from './destination.ts'
import { Order, type Sent } from './order.ts'
import { askingAboutTls, isDemoted, isFinal, isPassing, isReply, isUninvited, WrongServer } from './refusals.ts'
import type { Answer, Request } from './request.ts'
import { withoutArguments } from './without-arguments.ts'
import { Writes } from './writes.ts'

/** If the server answers "not now", the call is sent again after this pause, in ms. */
const PAUSE = 50
/** The time limit for connecting, with TLS and the handshake, is at least this many ms. */
const SHORTEST_GREETING = 1_000
/** The first and the longest pause between attempts to connect, in ms. */
const RECONNECT = { first: 10, longest: 1_000 }
/** A connection on which nothing has arrived for this many ms may have been dropped without a word. */
const IDLE = 15_000
/**
 * How long the first call after `IDLE` may be unanswered, in ms. A single attempt has 1 s in all. So this leaves most of
 * that second for the second try.
 */
const EARLY = 400

/** A call that has not settled. */
interface Call extends Answer<unknown>, Sent {
  readonly request: Request<unknown>
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
  resolve(outcome: unknown): void
  reject(error: unknown): void
}

export interface ConnectionListener {
  up(): void
  /**
   * Called when the connection is gone, or another attempt to connect has failed. `brief`: the connection has probably
   * ended only because it was idle, and the first attempt to connect again is still to come.
   */
  down(error: Error, brief: boolean): void
  /** Called when the server refuses to write, because it is a replica now. */
  demoted?(error: Error): void
  /** Returns whether a waiter or a hold depends on this connection. */
  busy?(): boolean
}

export class Connection {
  readonly redis: Redis | Cluster
  readonly #clock: Clock
  readonly #awake: AwakeClock
  readonly #outageTimeout: number
  readonly #slowest: number
  readonly #early: number
  readonly #listener: ConnectionListener
  readonly #destination: Destination
  readonly #writes: Writes
  readonly #order = new Order()
  /** Calls that have not settled, oldest first. */
  readonly #calls = new Set<Call>()
  /** Calls that are not sent yet because of their order. Nearly always empty. */
  readonly #heldBack = new Set<Call>()
  #sweep: Timer | undefined
  #reconnect: Timer | undefined
  #greeting: Timer | undefined
  #up = false
  /** Whether a server was up before. */
  #wasUp = false
  /** Whether a call was answered, so the password was accepted. (An old server without HELLO, or a node, is up before.) */
  #accepted = false
  #closed = false
  #attempts = 0
  #lastError: Error | undefined
  /**
   * Why this class tore down the connection. Errors that ioredis reports after the tear-down are only consequences of
   * it.
   */
  #torn: Error | undefined
  /** Why there is no connection. Undefined: there is one, or the first attempt is still under way. */
  #reason: Error | undefined
  /** Whether the last server refused to write. If so, the next one has to accept a write before it is used. */
  #demoted = false
  #putOff: Error | undefined
  #unanswered = 0
  #answeredAt = Number.NEGATIVE_INFINITY
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
    this.redis = redis
    this.#clock = clock
    this.#awake = awake(clock)
    this.#outageTimeout = outageTimeout
    this.#slowest = answerLimit(outageTimeout, 'nodes' in redis)
    this.#early = Math.min(this.#slowest, EARLY + blocks)
    this.#listener = listener
    this.#destination = destination
    this.#writes = new Writes(redis)
    redis.on('error', (raw: Error & { lastNodeError?: Error }) => {
      const error = this.#reported(raw)
      const { cause } = error
      const lastNodeError = raw.lastNodeError && withoutArguments(raw.lastNodeError)
      // ioredis reports this error at the end of its list of sentinels, even if it has asked none of them yet. So the
      // error proves nothing, and is ignored.
      if (/Retrying from scratch/.test(error.message)) return
      // An error with a `lastNodeError` comes from a cluster, and says only that all nodes have failed. If a node
      // refused the connection, `lastNodeError` is the reason. Otherwise redis/clients.ts finds the reason.
      if (cause instanceof WrongServer) this.#lastError = cause
      else if (lastNodeError && !isReply(lastNodeError)) this.#lastError ??= lastNodeError
      else this.#lastError = lastNodeError ?? error
    })
    redis.on('ready', () => this.#greeted())
    redis.on('end', () => this.#wentDown())
    redis.on('message', this.arrived).on('smessage', this.arrived)
  }

  get up(): boolean {
    return this.#up
  }

  /**
   * The error with which the server last answered "not now" (loading, busy, moving a slot). Undefined: the server has
   * since given a definite answer, or the connection has gone down.
   */
  get trouble(): Error | undefined {
    return this.#putOff
  }

  /** How many ms the server has been silent while commands were unanswered; 0 if no command is unanswered. */
  get silence(): number {
    return this.#unanswered > 0 ? this.#awake.now() - this.#lastAnswer : 0
  }

  /** For how many ms the oldest call that was sent has been unanswered; 0 if none is unanswered. */
  get lag(): number {
    const [oldest] = this.#calls
    return oldest?.underway ? this.#awake.now() - oldest.sentAwake : 0
  }

  /** Whether a new call is rejected at once: the client was closed, or the server refuses the connection for good. */
  get rejects(): boolean {
    return this.#closed || (this.#reason !== undefined && this.#refuses(this.#reason))
  }

  /** When the server last answered a call; −∞: never. An answer "not now" (loading, busy, moving a slot) does not count. */
  get answeredAt(): number {
    return this.#answeredAt
  }

  /** Starts to connect, and keeps the connection until `close`. */
  open(): void {
    if (this.#closed || this.redis.status === 'connecting' || this.redis.status === 'ready') return
    this.#reconnect?.cancel()
    this.#reconnect = undefined
    this.#torn = undefined
    // ioredis limits the time for the TCP connection, but not the time for the handshake after it.
    const limit = Math.max(SHORTEST_GREETING, this.#slowest)
    this.#greeting = this.#awake.after(limit, () => {
      this.reset(new Error(`the handshake of the connection was not completed within ${Math.round(limit)} ms`))
    })
    // A failure of `connect` arrives as the events 'error' and 'end', so the rejection of the promise is ignored.
    this.redis.connect().catch(() => {})
  }

  /**
   * Called when another connection to the same server has come up. If this connection is in a pause between two
   * attempts to connect, it connects at once.
   */
  hurry(): void {
    if (this.#reconnect) this.open()
  }

  /**
   * Calls `send`, if necessary several times, until it is answered or refused, or until `outageTimeout` has passed.
   * Sending twice must have the same effect as sending once. Rejects with LockConnectionError or LockClosedError.
   */
  run<T>(send: (redis: Redis | Cluster) => Promise<T>): Promise<T> {
    return this.ask({ send, read: ({ reply }) => reply as T })
  }

  /** The requests of this turn of the event loop that follow are sent in one write. */
  together(): void {
    this.#writes.together()
  }

  /** Runs a request. `run` is the short form for a request that has only `send`. */
  ask<T>(request: Request<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new LockClosedError())
    return new Promise((resolve, reject) => {
      const now = this.#clock.now()
      const call: Call = {
        request,
        begun: this.#awake.at(now),
        reply: undefined,
        sent: 0,
        sentAwake: 0,
        place: 0,
        turn: 0,
        underway: false,
        repeated: false,
        error: undefined,
        resolve: resolve as (outcome: unknown) => void,
        reject,
      }
      this.#calls.add(call)
      if (this.#reason && this.#refuses(this.#reason)) return this.#fail(call, refusedBy(this.#reason))
      if (this.#up) this.#send(call, now, call.begun)
      if (!this.#sweep) this.#armSweep()
    })
  }

  /**
   * Returns whether a refused request can be sent again: the server answered "not now", or the next connection has the
   * new password, or may lead to the new master. (In a cluster, MOVED leads to the new master.)
   */
  passes(error: Error): boolean {
    return isPassing(error) || this.isOutdated(error) || (isDemoted(error) && !('nodes' in this.redis))
  }

  /**
   * Returns whether the server refuses a password that it accepted before. The password has been changed, so the next
   * connection may have the new one.
   */
  isOutdated(error: unknown): error is Error {
    return this.#accepted && isUninvited(error)
  }

  /** Returns whether the error is a lasting refusal of the connection. */
  #refuses(error: Error): boolean {
    return isFinal(error) && !this.isOutdated(error)
  }

  /** Called when something has arrived, so the connection works. */
  readonly arrived = (): void => {
    this.#lastSign = this.#clock.now()
    this.#doubtful = false
  }

  /** Drops the socket and connects again. Called when nothing arrives on this connection any longer. */
  reset(reason: Error): void {
    this.#demoted ||= isDemoted(reason)
    // If the connection has ended, a new attempt to connect is already planned.
    if (this.#torn || this.redis.status === 'end') return
    this.#torn = this.#reported(reason)
    // If a cluster knows no node yet, ioredis does not emit 'end' after `disconnect`. So `#wentDown` is called below.
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
    // If the connection has ended already, `disconnect` would start a timer that keeps the process alive.
    if (this.redis.status !== 'end') this.redis.disconnect()
  }

  #send(call: Call, now = this.#clock.now(), awakeNow = this.#awake.at(now)): void {
    if (call.underway) return
    if (!this.#order.admits(call)) return void this.#heldBack.add(call)
    call.underway = true
    call.sent = now
    call.sentAwake = awakeNow
    this.#writes.next()
    if (this.#unanswered++ === 0) {
      this.#lastAnswer = call.sentAwake
      this.#doubtful = call.sent - this.#lastSign >= IDLE
    }
    call.request.send(this.redis).then(
      reply => {
        const now = this.#clock.now()
        call.underway = false
        this.#unanswered -= 1
        this.#lastSign = now
        this.#doubtful = false
        this.#accepted = true
        this.#answeredAt = this.#lastAnswer = this.#awake.at(now)
        this.#putOff = undefined
        const { turn } = call
        const earlier = this.#order.settled(call)
        if (earlier > turn && this.#calls.has(call)) {
          call.repeated = earlier > turn
          return this.#sendAgain(call, earlier < Number.POSITIVE_INFINITY ? 0 : PAUSE)
        }
        if (this.#calls.has(call) && call.request.redirected?.(reply)) return this.#sendAgain(call, 0)
        if (this.#heldBack.size > 0) this.#sendHeldBack()
        if (!this.#calls.delete(call)) return
        call.reply = reply
        try {
          call.resolve(call.request.read(call))
        } catch (error) {
          // The reply cannot be read. Only this call fails.
          call.reject(error)
        }
      },
      error => {
        const now = this.#clock.now()
        call.underway = false
        this.#unanswered -= 1
        this.#lastAnswer = this.#awake.at(now)
        if (isReply(error)) {
          this.#lastSign = now
          this.#doubtful = false
        }
        this.#order.settled(call)
        if (this.#calls.has(call)) this.#unknownOrRefused(call, error)
      },
    )
  }

  #sendHeldBack(): void {
    if (!this.#up || this.#closed) return
    const calls = [...this.#heldBack]
    this.#heldBack.clear()
    for (const call of calls) this.#send(call)
  }

  /**
   * Sends a call again that has just been answered, after a pause in ms. If the connection is down then, `#wentUp` sends
   * the call later.
   */
  #sendAgain(call: Call, pause: number): void {
    this.#order.refused(call)
    const send = () => {
      if (!this.#up || !this.#calls.has(call)) return
      if (pause > 0 && isUninvited(call.error)) this.reset(call.error)
      else this.#send(call)
    }
    if (pause > 0) this.#clock.after(pause, send)
    else send()
  }

  #unknownOrRefused(call: Call, raw: Error): void {
    const error = withoutArguments(raw)
    const wrong = this.#destination.wrongServer?.(this.redis, error)
    if (wrong) return this.reset(wrong)
    if (isReply(error) && call.request.rephrase?.(error)) return this.#sendAgain(call, 0)
    if (isReply(error) && !this.passes(error)) {
      this.#answeredAt = this.#lastAnswer
      this.#putOff = undefined
      return this.#fail(call, refusedBy(error))
    }
    call.error = this.#torn ?? error
    if (isReply(error)) this.#putOff = error
    // If the answer is "not now", the server has run nothing of the request, or only a part that the next run
    // completes. So only a failed connection sets `repeated`.
    if (!isReply(error)) call.repeated = true
    if (!this.#up) return
    if (isDemoted(error)) {
      this.reset(error)
      return this.#listener.demoted?.(error)
    }
    this.#sendAgain(call, PAUSE)
  }

  #fail(call: Call, error: Error): void {
    if (!this.#calls.delete(call)) return
    this.#order.settled(call)
    this.#heldBack.delete(call)
    this.#sendHeldBack()
    const ofCall = error instanceof LockConnectionError && !(error instanceof WrongServer)
    const explained = ofCall && call.request.explain?.(error, this)
    if (explained instanceof Promise) call.resolve(explained)
    else call.reject(explained || error)
  }

  /** Returns the error as it may be reported. If the server was never up, the port may be the wrong one. */
  #reported(error: Error): Error {
    const bare = withoutArguments(error)
    return this.#wasUp ? bare : askingAboutTls(bare, this.redis.options)
  }

  #greeted(): void {
    // `close` may have been called while credentials were fetched.
    if (this.#closed) return this.redis.disconnect()
    if (this.redis.status !== 'ready') return
    // From now on, such an error is about this attempt.
    if (isUninvited(this.#lastError)) this.#lastError = undefined
    const checked = this.#destination.check?.(this.redis, this.#demoted)
    if (!checked) return this.#wentUp()
    const greeting = this.#greeting
    checked.then(wrong => {
      // The connection may have been lost during the check, and even replaced.
      if (this.#closed || this.redis.status !== 'ready' || this.#greeting !== greeting) return
      // ioredis 5 counts as ready before the server has answered to the password. If the server refused it, the check
      // may have passed, because the server may let everybody select a database.
      if (isUninvited(this.#lastError)) this.reset(this.#lastError)
      else if (wrong) this.reset(wrong)
      else this.#wentUp()
    })
  }

  #wentUp(): void {
    this.#up = true
    this.#wasUp = true
    this.#greeting?.cancel()
    this.#attempts = 0
    this.#lastError = this.#torn = this.#reason = undefined
    this.#demoted = false
    this.arrived()
    this.#heldBack.clear()
    for (const call of this.#calls) this.#send(call)
    this.#listener.up()
  }

  #wentDown(): void {
    const brief = this.#up && (this.#torn ? this.#doubtful : this.#listener.busy?.() === false)
    this.#up = false
    this.#order.clear()
    this.#greeting?.cancel()
    if (this.#closed) return
    const error = this.#torn ?? this.#lastError ?? this.#reported(new Error('the connection to Redis was closed'))
    this.#putOff = undefined
    this.#reason = error
    if (this.#refuses(error)) for (const call of this.#calls) this.#fail(call, refusedBy(error))
    this.#listener.down(error, brief)
    const pause = Math.min(RECONNECT.longest, RECONNECT.first * 2 ** this.#attempts++)
    this.#reconnect = this.#clock.after(pause * (0.75 + Math.random() / 2), () => this.open())
  }

  /**
   * Starts the timer for the oldest call. All calls have the same time limit, so the time of the oldest call ends
   * first.
   */
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

  /** How long a call may be unanswered before this class gives the connection up, in ms. */
  get #answerLimit(): number {
    return this.#doubtful ? this.#early : this.#slowest
  }

  #giveUpOld(): void {
    const now = this.#awake.now()
    for (const call of this.#calls) {
      if (now - call.begun < this.#outageTimeout) break
      const away = isReply(this.#reason) ? this.#reason : this.#lastError
      const error = (this.#up ? call.error : (away ?? call.error)) ?? new Error('the command got no reply')
      const did = isReply(error) ? 'was not ready' : 'did not answer'
      this.#fail(call, new LockConnectionError(`Redis ${did} for ${this.#outageTimeout} ms`, error))
    }
    if (this.#up && this.#unanswered > 0 && now - this.#lastAnswer >= this.#answerLimit) {
      this.reset(
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

/**
 * The way to the server of one connection: connects, checks the server, and connects again whenever the connection is
 * lost. connection.ts has the calls that are sent on it.
 *
 * ioredis can reconnect and re-send on its own. But with its defaults, a command that was in flight when the socket
 * dropped may be executed twice. And without re-sending, the promise of a command may never settle. So here ioredis
 * neither reconnects nor re-sends. A lost connection immediately rejects all commands in flight.
 *
 * If the server has become a replica, its address may lead to the new master by now. So all connections are made again.
 * They count as up only when a server accepts a write; until then, the pauses between the attempts grow.
 *
 * The server may refuse the connection itself for a lasting reason: the password, the rights, the database, or the
 * wrong kind of server. Then every call is rejected at once, until an attempt to connect has a different outcome. But if
 * a password was accepted before, it may only have been changed. So its refusal counts as an outage.
 */
import type { Cluster, Redis } from 'ioredis'
import { awake, type Clock, type Timer } from '../clock.ts'
import type { Destination } from './destination.ts'
import { askingAboutTls, isDemoted, isFinal, isReply, isUninvited, WrongServer } from './refusals.ts'
import { withoutArguments } from './without-arguments.ts'

/** The time limit for connecting, with TLS and the handshake, is at least this many ms. */
export const SHORTEST_GREETING = 1_000
/** The first and the longest pause between attempts to connect, in ms. */
const RECONNECT = { first: 10, longest: 1_000 }

export interface UplinkListener {
  onUp(): void
  /** The connection is gone (`wasUp`), or another attempt to connect has failed. */
  onDown(error: Error, wasUp: boolean): void
}

export class Uplink {
  readonly redis: Redis | Cluster
  /** Whether commands can be sent. This field and the next three are written only here. */
  up = false
  closed = false
  /**
   * Why this class tore down the connection. Errors that ioredis reports after the tear-down are only consequences of
   * it.
   */
  torn: Error | undefined
  /** Why the server refuses the connection for good. Undefined: it does not. */
  refusal: Error | undefined
  /** Whether a call was answered, so the password was accepted. (An old server without HELLO, or a node, is up before.) */
  accepted = false
  readonly #clock: Clock
  readonly #destination: Destination
  readonly #limit: number
  readonly #listener: UplinkListener
  #reconnect: Timer | undefined
  #greeting: Timer | undefined
  /** Whether a server was up before. */
  #wasUp = false
  #attempts = 0
  #lastError: Error | undefined
  /** Why there is no connection. Undefined: there is one, or the first attempt is still under way. */
  #reason: Error | undefined
  /** Whether the last server refused to write. If so, the next one has to accept a write before it is used. */
  #demoted = false

  /** `limit`: the time limit for connecting, in ms. */
  constructor(redis: Redis | Cluster, clock: Clock, destination: Destination, limit: number, listener: UplinkListener) {
    this.redis = redis
    this.#clock = clock
    this.#destination = destination
    this.#limit = Math.max(SHORTEST_GREETING, limit)
    this.#listener = listener
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
    redis.on('end', () => this.#ended())
  }

  /** The latest reason why there is no connection, while there is none. */
  get away(): Error | undefined {
    return isReply(this.#reason) ? this.#reason : this.#lastError
  }

  /** Starts to connect, and keeps the connection until `close`. */
  open(): void {
    if (this.closed || this.redis.status === 'connecting' || this.redis.status === 'ready') return
    this.#reconnect?.cancel()
    this.#reconnect = undefined
    this.torn = undefined
    // ioredis limits the time for the TCP connection, but not the time for the handshake after it.
    const limit = this.#limit
    this.#greeting = awake(this.#clock).after(limit, () => {
      this.reset(new Error(`the handshake of the connection was not completed within ${Math.round(limit)} ms`))
    })
    // A failure of `connect` arrives as the events 'error' and 'end', so the rejection of the promise is ignored.
    this.redis.connect().catch(() => {})
  }

  /** Connects at once, if this is a pause between two attempts to connect. */
  hurry(): void {
    if (this.#reconnect) this.open()
  }

  /** Drops the socket and connects again. */
  reset(reason: Error): void {
    this.#demoted ||= isDemoted(reason)
    // If the connection has ended, a new attempt to connect is already planned.
    if (this.torn || this.redis.status === 'end') return
    this.torn = this.#reported(reason)
    // If a cluster knows no node yet, ioredis does not emit 'end' after `disconnect`. So `#ended` is called below.
    const mute = 'nodes' in this.redis && this.redis.status === 'connecting' && this.redis.nodes().length === 0
    this.redis.disconnect()
    if (mute) this.#ended()
  }

  /** Ends the connection for good. */
  close(): void {
    if (this.closed) return
    this.closed = true
    this.#reconnect?.cancel()
    this.#greeting?.cancel()
    // If the connection has ended already, `disconnect` would start a timer that keeps the process alive.
    if (this.redis.status !== 'end') this.redis.disconnect()
  }

  /**
   * Returns whether the server refuses a password that it accepted before. The password has been changed, so the next
   * connection may have the new one.
   */
  isOutdated(error: unknown): error is Error {
    return this.accepted && isUninvited(error)
  }

  /** Returns the error as it may be reported. If the server was never up, the port may be the wrong one. */
  #reported(error: Error): Error {
    const bare = withoutArguments(error)
    return this.#wasUp ? bare : askingAboutTls(bare, this.redis.options)
  }

  #greeted(): void {
    // `close` may have been called while credentials were fetched.
    if (this.closed) return this.redis.disconnect()
    if (this.redis.status !== 'ready') return
    // From now on, such an error is about this attempt.
    if (isUninvited(this.#lastError)) this.#lastError = undefined
    const checked = this.#destination.check?.(this.redis, this.#demoted)
    if (!checked) return this.#begun()
    const greeting = this.#greeting
    checked.then(wrong => {
      // The connection may have been lost during the check, and even replaced.
      if (this.closed || this.redis.status !== 'ready' || this.#greeting !== greeting) return
      // ioredis 5 counts as ready before the server has answered to the password. If the server refused it, the check
      // may have passed, because the server may let everybody select a database.
      if (isUninvited(this.#lastError)) this.reset(this.#lastError)
      else if (wrong) this.reset(wrong)
      else this.#begun()
    })
  }

  #begun(): void {
    this.up = true
    this.#wasUp = true
    this.#greeting?.cancel()
    this.#attempts = 0
    this.#lastError = this.torn = this.#reason = this.refusal = undefined
    this.#demoted = false
    this.#listener.onUp()
  }

  #ended(): void {
    const wasUp = this.up
    this.up = false
    this.#greeting?.cancel()
    if (this.closed) return
    const error = this.torn ?? this.#lastError ?? this.#reported(new Error('the connection to Redis was closed'))
    this.#reason = error
    this.refusal = isFinal(error) && !this.isOutdated(error) ? error : undefined
    this.#listener.onDown(error, wasUp)
    const pause = Math.min(RECONNECT.longest, RECONNECT.first * 2 ** this.#attempts++)
    this.#reconnect = this.#clock.after(pause * (0.75 + Math.random() / 2), () => this.open())
  }
}

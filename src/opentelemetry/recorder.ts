/**
 * Makes spans and metrics from a client's calls and their results.
 *
 *   call ──▶ lock.wait ──▶ granted ──▶ lock.hold ──▶ released, or lost
 *                     └──▶ timeout, refused, aborted, closed, failed
 *
 * The recorder observes the calls themselves, not the client's events, for two reasons. First, a span needs the
 * OpenTelemetry context of the caller. A call runs in that context. An event is emitted in the context of whatever
 * caused it, such as data from a socket or another caller's release. Second, events do not distinguish several holds of
 * one owner. The recorder uses events only for what it cannot see in calls: renewals, losses, lost connections, and the
 * holder for which a call waits.
 *
 * The spans `lock.wait` and `lock.hold` both have the caller's span as their parent, because the hold is not part of
 * the wait. While the call is being made, its wait span is active, so the spans of Redis commands become its children.
 */
import {
  type Attributes,
  type Context,
  context,
  type Link,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { isError, LockTimeoutError } from '../errors.ts'
import type { ClientEvents } from '../events.ts'
import type { Lease } from '../key/lease.ts'
import type { Spectator } from '../kind-client.ts'
import type { LockOptions } from '../options.ts'
import { type HoldSpan, HoldSpans } from './hold-spans.ts'
import type { Meters, Tally } from './meters.ts'
import { type CallOutcome, errorType, type HoldOutcome, names, outcomeOf } from './names.ts'
import { type Ending, type Room, Rooms } from './rooms.ts'
import type { Trail } from './trail.ts'

export interface Means {
  readonly tracer: Tracer
  readonly meters: Meters
  /**
   * Stores the ids of spans in Redis, where holders in every process find them. Undefined if the option `links` is not
   * set.
   */
  readonly trail: Trail | undefined
  /** Attributes of every span. */
  readonly common: Attributes
  /** Returns the tally that counts calls on this key. */
  tally(key: string): Tally
}

interface Wait {
  readonly kind: string
  /** The attributes that name the lock, for the wait span and for the hold span. */
  readonly about: Attributes
  readonly key: string
  readonly span: Span
  /** The context from which the call was made. */
  readonly from: Context
  readonly room: Room
  readonly tally: Tally
  readonly since: number
}

export class Recorder implements Spectator {
  readonly #means: Means
  readonly #rooms = new Rooms()
  readonly #waits = new Set<Wait>()
  readonly #holds = new HoldSpans()
  /**
   * Spans whose hold has ended, but which stay open until their link to the previous holder's span is known. Each span
   * has the time when its hold ended.
   */
  readonly #ending = new Map<Span, number>()
  #over = false

  constructor(means: Means) {
    this.#means = means
  }

  async call<T extends Lease | null>(
    on: Parameters<Spectator['call']>[0],
    operation: string,
    key: string,
    options: LockOptions | undefined,
    make: () => Promise<T>,
  ): Promise<T> {
    const wait = this.#begin(on, operation, key)
    try {
      const lease = await context.with(trace.setSpan(wait.from, wait.span), make)
      if (!this.#end(wait)) return lease
      if (lease) this.#granted(wait, lease)
      else this.#without(wait, options?.timeout ? 'timeout' : 'refused')
      return lease
    } catch (error) {
      if (this.#end(wait)) this.#without(wait, outcomeOf(error, options?.signal), error)
      throw error
    }
  }

  /** Returns a function that runs `fn` with the hold's span as the active one. */
  under<T>(lease: Lease, fn: () => T): () => T {
    const hold = this.#holds.of(lease)
    return hold ? () => context.with(trace.setSpan(context.active(), hold.span), fn) : fn
  }

  waiting(event: ClientEvents['waiting']): void {
    this.#rooms.find(event.key)?.note(event)
  }

  renewed({ key }: ClientEvents['renewed']): void {
    this.#means.tally(key).renewed()
  }

  lost({ key, fencingToken, error }: ClientEvents['lost']): void {
    const hold = this.#holds.lost(key, fencingToken, error)
    if (!hold) return
    this.#leaves(hold, false)
    this.#ended(hold, 'lost', error)
  }

  disconnected(): void {
    this.#means.meters.disconnected()
  }

  /** Ends all open spans. */
  close(): void {
    this.#over = true
    for (const wait of [...this.#waits]) {
      this.#end(wait)
      wait.span.end()
    }
    for (const hold of this.#holds.all) {
      this.#holds.remove(hold)
      hold.tally.holding(-1)
      hold.span.end()
    }
    for (const [span, at] of this.#ending) span.end(at)
    this.#ending.clear()
  }

  #begin({ name: kind, shared }: Parameters<Spectator['call']>[0], operation: string, key: string): Wait {
    const { tracer, common } = this.#means
    const from = context.active()
    const about: Attributes = { ...common, [names.key]: key, [names.kind]: kind || 'mutex' }
    if (kind === 'readWrite') about[names.mode] = shared ? 'read' : 'write'
    const attributes = { ...about, [names.operation]: operation }
    const span = tracer.startSpan('lock.wait', { kind: SpanKind.CLIENT, attributes }, from)
    const tally = this.#means.tally(key)
    const wait = { kind, about, key, span, from, room: this.#rooms.enter(key), tally, since: performance.now() }
    this.#waits.add(wait)
    tally.waiting(1)
    return wait
  }

  /** Returns false if the wait had already ended. */
  #end(wait: Wait): boolean {
    if (!this.#waits.delete(wait)) return false
    this.#rooms.leave(wait.key, wait.room)
    wait.tally.waiting(-1)
    return true
  }

  #without({ span, tally, since }: Wait, outcome: CallOutcome, error?: unknown): void {
    const type = error === undefined || outcome === 'aborted' ? undefined : errorType(error)
    tally.without(outcome, type, performance.now() - since)
    span.setAttribute(names.outcome, outcome)
    if (type !== undefined) fail(span, type, error)
    if (error instanceof LockTimeoutError) describeHolder(span, error.holder?.label, error.position)
    span.end()
  }

  #granted(wait: Wait, lease: Lease): void {
    const { kind, key, span, room, tally } = wait
    const trail = this.#trail(kind)
    const { via, fencingToken, waited } = lease
    const event = room.take(lease.owner)
    describeHolder(span, event?.holder?.label, event?.position)
    span.setAttributes({ [names.outcome]: 'granted', [names.via]: via, [names.token]: fencingToken })
    span.end()
    tally.granted(via, waited)
    tally.holding(1)

    const before = this.#before(wait, lease)
    const now = performance.now()
    if (before?.released) tally.handedOff(now - before.at)
    const hold = this.#open(wait, lease, now, before?.link)
    if (trail && via !== 'reentry') {
      const waited = before !== undefined || via !== 'immediate'
      hold.linked = trail.follow(key, fencingToken, hold.span.spanContext(), link => {
        if (waited) hold.span.addLink(link)
      })
    }
    this.#watch(hold, lease)
  }

  /**
   * Returns the trail (see `Means`) for locks of this kind. Only a mutex has a trail, because only a mutex has exactly
   * one previous holder.
   */
  #trail(kind: string): Trail | undefined {
    return kind === '' ? this.#means.trail : undefined
  }

  /**
   * If this call got the lock because a hold of this client ended while the call waited, returns the data about the end
   * of that hold. Removes the data from `room`, so that it is used for one call only.
   */
  #before({ kind, room, since }: Wait, { via }: Lease): Ending | undefined {
    if (via === 'reentry') return undefined
    const ending = room.endings.get(kind)
    room.endings.delete(kind)
    return ending && since <= ending.at ? ending : undefined
  }

  #open({ from, tally, kind, about }: Wait, lease: Lease, since: number, link: Link | undefined): HoldSpan {
    const { tracer } = this.#means
    const attributes: Attributes = {
      ...about,
      [names.token]: lease.fencingToken,
      [names.via]: lease.via,
    }
    // If the caller set no owner, the owner is the secret id of the lease, so the span does not show it.
    if (lease.owner !== lease.id) attributes[names.owner] = lease.owner
    // If span ids are stored in Redis (the trail), the link comes from there, and is exact. The link that this client
    // finds by itself may be wrong, because another process may have held the lock after the last hold that this client
    // knows.
    const links = link && !this.#trail(kind) ? [link] : []
    const span = tracer.startSpan('lock.hold', { attributes, links }, from)
    const { id, key, fencingToken, signal } = lease
    const hold = { lease: { id, key, fencingToken, signal }, kind, span, tally, since, releasing: false }
    this.#holds.add(hold)
    return hold
  }

  /**
   * Observes the lease until it ends. Every release is a call of `lease.release`, also if the client itself releases
   * the lock, as `using` does. So this method replaces `lease.release` by a function that also ends the span.
   */
  #watch(hold: HoldSpan, lease: Lease): void {
    const release = lease.release.bind(lease)
    const value = (): Promise<boolean> => {
      this.#leaves(hold, true)
      const released = release()
      released.then(
        live => this.#ended(hold, live ? 'released' : 'unconfirmed'),
        error => this.#ended(hold, 'unconfirmed', error),
      )
      return released
    }
    Object.defineProperty(lease, 'release', { value, configurable: true, writable: true })
    // The hold may have ended before `lock` returned the lease to its caller.
    if (!lease.held && lease.signal.aborted) this.#ended(hold, 'lost', lease.signal.reason)
  }

  /** Remembers a hold that is about to end. The span of the next hold of the lock gets a link to this hold's span. */
  #leaves(hold: HoldSpan, released: boolean): void {
    if (hold.releasing) return
    hold.releasing = true
    const { lease, kind, span } = hold
    const room = this.#rooms.find(lease.key)
    if (!room || this.#over) return
    const link = { context: span.spanContext(), attributes: { [names.token]: lease.fencingToken } }
    room.endings.set(kind, { at: performance.now(), link, released })
  }

  #ended(hold: HoldSpan, outcome: HoldOutcome, error?: unknown): void {
    if (!this.#holds.remove(hold)) return
    const { span, tally, since, linked } = hold
    const now = performance.now()
    tally.holding(-1)
    tally.ended(outcome, now - since)
    span.setAttribute(names.outcome, outcome)
    if (error !== undefined) fail(span, errorType(error), error)
    if (!linked) return span.end()
    this.#ending.set(span, now)
    linked.then(() => {
      if (this.#ending.delete(span)) span.end(now)
    })
  }
}

function describeHolder(span: Span, holder: string | undefined, position: number | undefined): void {
  if (holder !== undefined) span.setAttribute(names.holder, holder)
  if (position !== undefined) span.setAttribute(names.position, position)
}

function fail(span: Span, type: string, error: unknown): void {
  span.setAttribute(names.errorType, type)
  if (isError(error)) span.recordException(error)
  span.setStatus({ code: SpanStatusCode.ERROR, message: isError(error) ? error.message : String(error) })
}

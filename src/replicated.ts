/**
 * The option `replicas`: a step between a grant and its caller. The grant becomes a hold, which is renewed and watched as
 * every other. But its caller gets it only once enough replicas have it.
 *
 *      wait ──grant──▶ hold ──▶ replicas are asked ──▶ enough have it: the caller gets its lease
 *        ▲                               └─▶ too few, or the hold has ended: it is released
 *        └──── pause, a new id ◀─────────────┘
 *
 * Until its caller has the lease, the call waits: a time-out, an abort or `close` ends it at once, and releases the hold
 * (I7). Each wait of a call has an id of its own. So a grant that was taken back is never used, even if another server
 * still has it (I2), and recent-releases.ts takes it back there, too (I4).
 *
 * A hand-off within the client passes on a hold that replicas have, so nobody is asked about it.
 */
import type { Clock, Timer } from './clock.ts'
import { LockClosedError, LockConnectionError } from './errors.ts'
import type { Hold, Loss } from './key/hold.ts'
import type { Holds } from './key/holds.ts'
import type { Io } from './key/io.ts'
import type { Settle, Waiter, Wish } from './key/waiter.ts'
import type { Granted } from './kind.ts'
import type { CallTerms } from './settings.ts'

/** The pause before a call asks for the lock again, in ms. */
const PAUSE = 50

/** A grant that enough replicas have. */
export interface Confirmed extends Granted {
  readonly hold: Hold
}

export interface ReplicatedParts {
  readonly io: Io
  readonly holding: Holds
  readonly clock: Clock
  /** For how many ms a call asks again, counted from the moment when replicas were first asked about one of its holds. */
  readonly patience: number
  readonly newId: () => string
}

export class ReplicatedCalls {
  readonly parts: ReplicatedParts
  /** The holds about which replicas are asked. */
  readonly asked = new Map<Hold, ReplicatedCall>()
  /** The calls that will ask for the lock again. */
  readonly pausing = new Set<ReplicatedCall>()

  constructor(parts: ReplicatedParts) {
    this.parts = parts
  }

  /** Begins a call, as `Io.start` does. `settle` gets a hand-off within the client, or a `Confirmed`. */
  start(wish: Wish, terms: CallTerms, settle: Settle): ReplicatedCall {
    return new ReplicatedCall(this, wish, terms, settle)
  }

  /** How many calls wait for replicas, or for their next attempt. Single attempts do not count as waiting. */
  get waiting(): number {
    const asked = [...this.asked.values()].filter(({ waiter }) => waiter.wish.mode !== 'once')
    return asked.length + this.pausing.size
  }

  /** Called when a hold has been lost. Returns false if its caller has got it. */
  lost(hold: Hold, loss: Loss): boolean {
    const call = this.asked.get(hold)
    if (loss instanceof LockClosedError) call?.end(loss)
    else call?.failed(hold, gone())
    return call !== undefined
  }

  /** Rejects these calls with LockClosedError, and takes back what they were granted. */
  refuse(which: (waiter: Waiter) => boolean): void {
    for (const call of [...this.asked.values(), ...this.pausing]) if (which(call.waiter)) call.end(new LockClosedError())
  }
}

class ReplicatedCall {
  /** The waiter of the present wait, or of the last one. */
  waiter: Waiter
  readonly #calls: ReplicatedCalls
  readonly #terms: CallTerms
  readonly #settle: Settle
  #hold: Hold | undefined
  #pause: Timer | undefined
  /** When replicas were first asked about a hold of this call, in monotonic ms. */
  #askedAt: number | undefined

  constructor(calls: ReplicatedCalls, wish: Wish, terms: CallTerms, settle: Settle) {
    this.#calls = calls
    this.#terms = terms
    this.#settle = settle
    this.waiter = calls.parts.io.start(wish, this.#ended)
  }

  /** Ends the call for its caller's signal or time-out. */
  giveUp(aborted: boolean | undefined): void {
    const { io } = this.#calls.parts
    if (!this.waiter.waits) this.end(undefined)
    else if (aborted) io.end(this.waiter, undefined)
    else io.outOfTime(this.waiter)
  }

  /** Ends the call between a grant and its caller, or in a pause. */
  end(error: Error | undefined): void {
    this.#takeBack()
    this.#settle(error, this.waiter, this.#calls.parts.clock.now())
  }

  /** Called when replicas do not have the hold, or the hold has ended before they were known to have it. */
  failed(hold: Hold, error: Error): void {
    if (this.#hold !== hold) return
    const { clock, patience } = this.#calls.parts
    const outOfPatience = clock.now() + PAUSE - this.#askedAt! >= patience
    if (outOfPatience || this.waiter.wish.mode === 'once') return this.end(error)
    this.#takeBack()
    this.#calls.pausing.add(this)
    this.#pause = clock.after(PAUSE, () => this.#askAgain())
  }

  readonly #ended: Settle = (end, waiter, now) => {
    this.waiter = waiter
    if (!end || !('token' in end) || 'run' in end) return this.#settle(end, waiter, now)
    const { holding } = this.#calls.parts
    const { claim, since, alone } = waiter
    const { renew, maxHold } = this.#terms
    const hold = holding.take({ claim, since, renew, maxHold, alone }, end, now)
    this.#hold = hold
    this.#askedAt ??= now
    this.#calls.asked.set(hold, this)
    holding.confirm(hold).then(
      () => this.#confirmed({ ...end, hold }),
      error => this.failed(hold, error),
    )
  }

  #confirmed(grant: Confirmed): void {
    const { hold } = grant
    const now = this.#calls.parts.clock.now()
    if (hold.remaining(now) === 0) return this.failed(hold, gone())
    hold.begin(now)
    this.#hold = undefined
    this.#calls.asked.delete(hold)
    this.#settle(grant, this.waiter, now)
  }

  #takeBack(): void {
    this.#pause?.cancel()
    this.#calls.pausing.delete(this)
    const hold = this.#hold
    if (!hold) return
    this.#hold = undefined
    this.#calls.asked.delete(hold)
    this.#calls.parts.holding.forget(hold)
    this.#calls.parts.io.leave(this.waiter)
  }

  #askAgain(): void {
    const { io, holding, newId } = this.#calls.parts
    this.#calls.pausing.delete(this)
    const { wish } = this.waiter
    const { key, id: before, owner } = wish.claim
    const id = newId()
    const claim = { ...wish.claim, id, owner: owner === before ? id : owner }
    const after = wish.mayReenter ? holding.record(key, owner) : undefined
    this.waiter = io.start({ ...wish, claim, after }, this.#ended, this.waiter)
  }
}

function gone(): LockConnectionError {
  const cause = new Error('the lease ended before enough replicas had confirmed the grant')
  return new LockConnectionError('the lock was not replicated', cause)
}

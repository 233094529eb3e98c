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
import { LockConnectionError } from './errors.ts'
import type { Hold } from './key/hold.ts'
import type { Holds } from './key/holds.ts'
import type { Io } from './key/io.ts'
import type { Settle, Waiter, Wish } from './key/waiter.ts'
import type { Granted } from './kind.ts'
import type { CallTerms } from './settings.ts'

/** The pause before a call asks for the lock again, in ms. */
const PAUSE = 50

const tooLate = new Error('the lease ended before enough replicas had confirmed the grant')

/** A grant that enough replicas have. */
export interface Confirmed extends Granted {
  readonly hold: Hold
}

/** What all calls of a kind of lock in one client share. */
export interface Replicas {
  readonly io: Io
  readonly holding: Holds
  readonly clock: Clock
  /** For how many ms a call asks again, counted from the moment when replicas were first asked about one of its holds. */
  readonly patience: number
  readonly newId: () => string
  /** The calls whose holds replicas are asked about, and those that will ask for the lock again, by their last holds. */
  readonly asked: Map<Hold, ReplicatedCall>
}

export class ReplicatedCall {
  /** The present waiter, or the last one. */
  waiter: Waiter
  readonly #replicas: Replicas
  readonly #terms: CallTerms
  readonly #settle: Settle
  #hold: Hold | undefined
  #pause: Timer | undefined
  /** When replicas were first asked about a hold of this call, in monotonic ms. */
  #askedAt: number | undefined

  /** Begins a wait, as `Io.start` does. `settle` gets a hand-off within the client, or a `Confirmed`. */
  constructor(replicas: Replicas, wish: Wish, terms: CallTerms, settle: Settle) {
    this.#replicas = replicas
    this.#terms = terms
    this.#settle = settle
    this.waiter = replicas.io.start(wish, this.#ended)
  }

  /** Ends the call, because its signal has aborted, or its time is over. */
  giveUp(aborted: boolean | undefined): void {
    const { io } = this.#replicas
    if (!this.waiter.waits) this.end(undefined)
    else if (aborted) io.end(this.waiter, undefined)
    else io.outOfTime(this.waiter)
  }

  /** Ends the call while replicas are asked, or in a pause. */
  end(error: Error | undefined): void {
    const hold = this.#hold as Hold
    this.#replicas.asked.delete(hold)
    if (this.#pause) this.#pause.cancel()
    else this.#takeBack(hold)
    this.#settle(error, this.waiter, this.#replicas.clock.now())
  }

  readonly #ended: Settle = (end, waiter, now) => {
    this.waiter = waiter
    if (!end || !('token' in end) || 'run' in end) return this.#settle(end, waiter, now)
    const { holding, asked } = this.#replicas
    const { claim, since } = waiter
    const { renew, maxHold } = this.#terms
    const hold = holding.take({ claim, since, renew, maxHold }, end, now)
    this.#hold = hold
    this.#askedAt ??= now
    asked.set(hold, this)
    holding.renew(hold, 0).then(
      () => this.#answered({ ...end, hold }),
      error => this.#answered({ ...end, hold }, error),
    )
  }

  /** `error`: why the hold does not count: too few replicas have it, or it has ended. */
  #answered(grant: Confirmed, error?: unknown): void {
    const { asked, clock, patience } = this.#replicas
    const { hold } = grant
    // Otherwise the call has ended meanwhile.
    if (!asked.has(hold)) return
    const now = clock.now()
    if (error === undefined && hold.remaining(now) > 0) {
      hold.begin(now)
      asked.delete(hold)
      this.#settle(grant, this.waiter, now)
    } else if (this.waiter.wish.mode === 'once' || now + PAUSE - (this.#askedAt as number) >= patience) {
      const known = error instanceof LockConnectionError
      this.end(known ? error : new LockConnectionError('the lock was not replicated', tooLate))
    } else {
      this.#pause = clock.after(PAUSE, () => this.#askAgain(hold))
      this.#takeBack(hold)
    }
  }

  #takeBack(hold: Hold): void {
    const { io, holding } = this.#replicas
    holding.forget(hold)
    io.leave(this.waiter)
  }

  #askAgain(last: Hold): void {
    const { io, holding, asked } = this.#replicas
    this.#pause = undefined
    asked.delete(last)
    const { wish } = this.waiter
    const { key, id: before, owner } = wish.claim
    const id = this.#replicas.newId()
    const claim = { ...wish.claim, id, owner: owner === before ? id : owner }
    const after = wish.mayReenter ? holding.record(key, owner) : undefined
    this.waiter = io.start({ ...wish, claim, after }, this.#ended, this.waiter)
  }
}

/**
 * Grants that count only when enough replicas have them.
 *
 *   granted ──▶ confirm ─┬─ enough       the waiter has the lock
 *                        ├─ gone         the grant has lapsed, or another server answers: look again
 *                        └─ too few      undone, and the waiter goes on waiting
 *
 * After either it goes on for `patience` ms from the first such answer; a single attempt rejects at once.
 *
 * While its grant is being confirmed a waiter still waits: it may give up, and then everything is taken back as ever. What
 * tells of the same grant once more in the meantime changes nothing.
 */
import type { Clock } from '../clock.ts'
import { LockConnectionError } from '../errors.ts'
import type { Granted, Kind } from '../kind.ts'
import type { Waiter } from './waiters.ts'

export interface Confirmed {
  /** The grant counts. */
  granted(waiter: Waiter, grant: Granted): void
  /** It does not: takes it back, and calls `undone` when Redis has nothing of it any more. */
  undo(waiter: Waiter, undone: () => void): void
  /** The waiter asks anew, with the place that it had. */
  again(waiter: Waiter): void
  end(waiter: Waiter, error: Error): void
}

/** Between the end of a grant that did not count and the next attempt, in ms. */
const PAUSE = 50

const tooLate = new Error('its lease ended before enough replicas had it')

export class Confirming {
  readonly #confirm: NonNullable<Kind['confirm']>
  readonly #clock: Clock
  readonly #patience: number
  readonly #told: Confirmed

  constructor(confirm: NonNullable<Kind['confirm']>, clock: Clock, patience: number, told: Confirmed) {
    this.#confirm = confirm
    this.#clock = clock
    this.#patience = patience
    this.#told = told
  }

  start(waiter: Waiter, grant: Granted): void {
    waiter.latest = Math.max(waiter.latest, grant.token)
    if (waiter.confirming) return
    waiter.confirming = true
    const { key, id, lease } = waiter.claim
    const begun = this.#clock.now()
    const asked = begun + lease
    this.#confirm({ hold: { key, id }, token: grant.token }).then(
      deadline => {
        if (waiter.state !== 'waiting') return
        // The answer may be older than a newer grant that was heard of meanwhile.
        const proven = typeof deadline === 'number' && grant.token === waiter.latest
        const until = proven ? Math.max(Math.min(deadline, asked), grant.deadline) : 0
        if (until <= this.#clock.now()) {
          if (!this.#endedBy(waiter, begun, new LockConnectionError('the lock was not replicated', tooLate)))
            this.#again(waiter)
          return
        }
        waiter.confirming = false
        this.#told.granted(waiter, { ...grant, deadline: until })
      },
      error => {
        if (waiter.state !== 'waiting' || this.#endedBy(waiter, begun, error)) return
        this.#told.undo(waiter, () => this.#clock.after(PAUSE, () => this.#again(waiter)))
      },
    )
  }

  /**
   * Ends the wait if it was a single attempt, or its patience is over by the time of the next one: what has used it all up
   * may have been timed to end a moment before.
   */
  #endedBy(waiter: Waiter, begun: number, error: Error): boolean {
    const now = this.#clock.now()
    waiter.unconfirmedSince ??= begun
    const over = waiter.wish.mode === 'once' || now + PAUSE - waiter.unconfirmedSince >= this.#patience
    if (over) this.#told.end(waiter, error)
    return over
  }

  #again(waiter: Waiter): void {
    waiter.confirming = false
    if (waiter.state === 'waiting') this.#told.again(waiter)
  }
}

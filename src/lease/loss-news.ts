/**
 * Where each lock has an inbox of its own (in a cluster), a holder does not hear by itself that its lock is taken away:
 * it would learn it by its next renewal, or not at all if its lease is not renewed (I8). So a hold that lasts subscribes to
 * the inbox of its lock, without its caller's doing, unless it is renewed so often, and without end, that this would
 * bring nothing; a short one ends before, and costs nothing. What happened before it is known to be heard is found by
 * asking once.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Hold } from '../local/hold.ts'

/** A hold lasts from this age on, in ms. */
const LASTING = 100
/** A lease that is renewed at this pace, in ms, or faster needs no news. */
const PROMPT = 1_000
/** Pace of looking which of them have ended, in ms. */
const SWEEP = 1_000

export interface Inboxes {
  hear(key: string, channel: 'inbox'): Promise<void> | undefined
  drop(key: string, channel: 'inbox'): void
}

export class LossNews {
  readonly #clock: Clock
  readonly #inboxes: Inboxes
  readonly #doubt: (id: string) => void
  /** Not old enough yet, oldest first. */
  #young: Hold[] = []
  #listening: Hold[] = []
  #timer: Timer | undefined

  /** `doubt`: the hold that Redis knows by this id may be gone. */
  constructor(clock: Clock, inboxes: Inboxes, doubt: (id: string) => void) {
    this.#clock = clock
    this.#inboxes = inboxes
    this.#doubt = doubt
  }

  add(hold: Hold): void {
    if (isRenewed(hold) && hold.length / 3 <= PROMPT) return
    this.#young.push(hold)
    if (this.#young.length === 1) this.#arm(LASTING)
  }

  close(): void {
    this.#timer?.cancel()
    this.#young = []
    this.#listening = []
  }

  #arm(ms: number): void {
    this.#timer?.cancel()
    this.#timer = this.#clock.after(ms, () => this.#look())
  }

  #look(): void {
    const now = this.#clock.now()
    this.#listening = this.#listening.filter(hold => {
      if (isHeld(hold)) return true
      this.#inboxes.drop(hold.key, 'inbox')
      return false
    })
    const young = this.#young.filter(isHeld)
    const old = young.filter(hold => now - hold.since >= LASTING)
    this.#young = young.slice(old.length)
    for (const hold of old) this.#listen(hold)
    if (this.#young.length > 0) this.#arm(LASTING)
    else if (this.#listening.length > 0) this.#arm(SWEEP)
  }

  #listen(hold: Hold): void {
    this.#listening.push(hold)
    // One that cannot be heard, for now or for want of rights, is noticed by renewals only.
    // Also where somebody else of this client hears it: since when, is not known.
    const hearing = this.#inboxes.hear(hold.key, 'inbox') ?? Promise.resolve()
    hearing.then(
      () => this.#doubt(hold.name.id),
      () => {},
    )
  }
}

function isRenewed(hold: Hold): boolean {
  return hold.renewUntil === Number.POSITIVE_INFINITY
}

function isHeld(hold: Hold): boolean {
  return hold.state.is === 'held'
}

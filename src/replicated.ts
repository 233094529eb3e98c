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
 */
import type { Clock, Timer } from './clock.ts'
import { LockConnectionError } from './errors.ts'
import type { Hold } from './key/hold.ts'
import type { Holds } from './key/holds.ts'
import type { Requests } from './key/requests.ts'
import type { Call, Waiter } from './key/waiter.ts'
import type { Granted } from './kind.ts'

/** The pause before a call asks for the lock again, in ms. */
const PAUSE = 50

const tooLate = new Error('the lease ended before enough replicas had confirmed the grant')

/** A call of a client with the option `replicas` (call.ts). */
export interface ReplicatedCall extends Pick<Call, 'mode'> {
  readonly terms: { readonly renew: boolean; readonly maxHold: number }
  readonly waiter: Waiter
  /** Whether the time-out was over before the first answer: a grant is confirmed once, or not at all. */
  readonly late: boolean
  /** When replicas were first asked about a hold of the call, in monotonic ms. */
  replicasAsked: number | undefined
  /** Begins another wait, at `now`. */
  ask(now: number): void
  /** Ends the call: with the hold that enough replicas have, with an error, or without both. */
  settle(end: Hold | Error | undefined, now: number): void
}

/** The step of one call. */
interface Step {
  /** The hold that replicas are asked about, or that was taken back last. */
  hold: Hold
  /** Set while the call pauses before it asks for the lock again. */
  pause?: Timer | undefined
}

export class Confirmations {
  readonly #requests: Requests
  readonly #holding: Holds
  readonly #clock: Clock
  readonly #patience: number
  /** The calls whose holds replicas are asked about, and those that will ask for the lock again. */
  readonly #steps = new Map<ReplicatedCall, Step>()
  /** The holds that replicas are asked about. Their callers have not got them. */
  readonly #asked = new Set<Hold>()

  /** `patience`: for how many ms a call asks again, counted from when replicas were first asked about one of its holds. */
  constructor(requests: Requests, holding: Holds, clock: Clock, patience: number) {
    this.#requests = requests
    this.#holding = holding
    this.#clock = clock
    this.#patience = patience
  }

  get calls(): ReplicatedCall[] {
    return [...this.#steps.keys()]
  }

  /** Whether replicas are asked about this hold, so that its caller has not got it. */
  asksAbout(hold: Hold): boolean {
    return this.#asked.has(hold)
  }

  /** How many holds there are about which replicas are asked. */
  get held(): number {
    return [...this.#asked].filter(({ state }) => state.is === 'held').length
  }

  confirm(call: ReplicatedCall, grant: Granted, now: number): void {
    const { claim, key, since } = call.waiter
    const { renew, maxHold } = call.terms
    const hold = this.#holding.take({ claim, since, renew, maxHold }, key, grant, now)
    call.replicasAsked ??= now
    this.#steps.set(call, { hold })
    this.#asked.add(hold)
    const told = (error?: unknown) => this.#steps.get(call)?.hold === hold && this.#answered(call, error)
    this.#holding.renew(hold, 0).then(() => told(), told)
  }

  /** Ends the call while replicas are asked, or in its pause. */
  end(call: ReplicatedCall, error: Error | undefined): void {
    const step = this.#steps.get(call)
    if (!step) return
    this.#steps.delete(call)
    if (step.pause) step.pause.cancel()
    else this.#takeBack(call, step)
    call.settle(error, this.#clock.now())
  }

  /** `error`: why the hold does not count: too few replicas have it, or it has ended. */
  #answered(call: ReplicatedCall, error: unknown): void {
    const step = this.#steps.get(call) as Step
    const now = this.#clock.now()
    if (error === undefined && step.hold.remaining(now) > 0) {
      step.hold.begin(now)
      this.#steps.delete(call)
      this.#asked.delete(step.hold)
      call.settle(step.hold, now)
    } else if (call.late) {
      this.end(call, undefined)
    } else if (call.mode === 'once' || now + PAUSE - (call.replicasAsked as number) >= this.#patience) {
      const lapsed = !(error instanceof LockConnectionError)
      this.end(call, lapsed ? new LockConnectionError('the lock was not replicated', tooLate) : error)
    } else {
      step.pause = this.#clock.after(PAUSE, () => {
        this.#steps.delete(call)
        call.ask(this.#clock.now())
      })
      this.#takeBack(call, step)
    }
  }

  #takeBack({ waiter }: ReplicatedCall, { hold }: Step): void {
    this.#holding.forget(hold)
    this.#asked.delete(hold)
    this.#requests.leave(waiter)
  }
}

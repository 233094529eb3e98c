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

/** What all calls of a kind of lock in one client share. */
export interface Replicas {
  readonly io: Io
  readonly holding: Holds
  readonly clock: Clock
  /** For how many ms a call asks again, counted from the moment when replicas were first asked about one of its holds. */
  readonly patience: number
  /** The calls whose holds replicas are asked about, and those that will ask for the lock again, by their last holds. */
  readonly asked: Map<Hold, ReplicatedCall>
}

export interface ReplicatedCall {
  /** The present waiter, or the last one. */
  readonly waiter: Waiter
  /** Ends the call while replicas are asked, or in a pause. */
  end(error: Error | undefined): void
  /** Called when the caller's `timeout` is over before the first answer: a grant is confirmed once, or not at all. */
  outOfTime(): void
}

/**
 * Begins a call, as `Io.start` does. `wish` returns the call's wish, each time with a new id. `settle` gets a hand-off
 * within the client, or the hold that enough replicas have.
 */
export function startReplicated(
  { io, holding, clock, patience, asked }: Replicas,
  wish: () => Wish,
  { renew, maxHold }: CallTerms,
  settle: (end: Granted | Hold | Error | undefined, waiter: Waiter, now: number) => void,
): ReplicatedCall {
  let hold: Hold
  let pause: Timer | undefined
  let askedAt: number | undefined
  let late = false

  const settled: Settle = (end, waiter, now) => {
    if (!end || !('token' in end) || 'run' in end) return settle(end, waiter, now)
    const { claim, since } = waiter
    const taken = holding.take({ claim, since, renew, maxHold }, end, now)
    hold = taken
    askedAt ??= now
    asked.set(hold, call)
    const told = (error?: unknown) => asked.has(taken) && answered(error)
    holding.renew(hold, 0).then(() => told(), told)
  }

  /** `error`: why the hold does not count: too few replicas have it, or it has ended. */
  const answered = (error: unknown) => {
    const now = clock.now()
    if (error === undefined && hold.remaining(now) > 0) {
      hold.begin(now)
      asked.delete(hold)
      settle(hold, call.waiter, now)
    } else if (late) {
      end(undefined)
    } else if (call.waiter.wish.mode === 'once' || now + PAUSE - (askedAt as number) >= patience) {
      const lapsed = !(error instanceof LockConnectionError)
      end(lapsed ? new LockConnectionError('the lock was not replicated', tooLate) : error)
    } else {
      pause = clock.after(PAUSE, askAgain)
      takeBack()
    }
  }

  const takeBack = () => {
    holding.forget(hold)
    io.leave(call.waiter)
  }

  const askAgain = () => {
    pause = undefined
    asked.delete(hold)
    call.waiter = io.start(wish(), settled, call.waiter)
  }

  const end = (error: Error | undefined) => {
    asked.delete(hold)
    if (pause) pause.cancel()
    else takeBack()
    settle(error, call.waiter, clock.now())
  }

  const outOfTime = () => {
    late = true
  }

  const call = { waiter: io.start(wish(), settled), end, outOfTime }
  return call
}

/** The requests of waiters to Redis, and the handling of late and missing answers. */
import { awake, type Clock, type Timer } from '../clock.ts'
import type { Granted, Kind, Refused } from '../kind.ts'
import { type Asker, type Attempt, type Sending, UNDO_PAUSE } from '../local/effects.ts'
import type { Place } from '../local/states.ts'
import type { Waiter } from '../local/waiter.ts'
import type { Cleanup } from './cleanup.ts'
import type { Outage } from './outage.ts'
import type { SingleAttempts } from './single.ts'

/**
 * If other waiters of the client stand behind the first unfair waiter, its grant reserves this many fencing tokens for
 * hand-offs within the client. So this is also the largest number of hand-offs that can follow one grant by Redis.
 */
const BLOCK = 1_000

export class Requests implements Sending {
  readonly confirm: Sending['confirm']
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #awake: Clock
  readonly #patience: number
  readonly #outage: Outage
  readonly #single: SingleAttempts
  readonly #cleanup: Cleanup
  readonly #freed: (key: string) => void
  /** Timers of fair waiters whose subscriptions took long. Each fires when its waiter's patience is over. */
  readonly #joining = new Map<Waiter, Timer>()

  /**
   * `patience`: for how many ms a waiter tolerates that Redis does not answer. `freed` is called when a waiter has been
   * removed from Redis, or its grant has been released there. The lock may be free then.
   */
  constructor(
    kind: Kind,
    clock: Clock,
    patience: number,
    outage: Outage,
    single: SingleAttempts,
    cleanup: Cleanup,
    freed: (key: string) => void,
  ) {
    this.#kind = kind
    this.#clock = clock
    this.#awake = awake(clock)
    this.#patience = patience
    this.#outage = outage
    this.#single = single
    this.#cleanup = cleanup
    this.#freed = freed
    const { confirmation } = kind
    this.confirm =
      confirmation &&
      ((lock, waiter, grant) => {
        const { key, id } = waiter.claim
        const begun = clock.now()
        confirmation.confirm({ hold: { key, id }, token: grant.token }).then(
          deadline => lock.confirmed(waiter, grant, begun, deadline),
          error => lock.unconfirmed(waiter, begun, error),
        )
      })
  }

  now(): number {
    return this.#clock.now()
  }

  ask(lock: Asker, waiter: Waiter, attempt: Attempt, join: boolean, reserve: boolean): void {
    const begun = attempt === 'as-head' ? this.#awake.now() : 0
    let again = false
    const answered = (answer: Granted | Refused) => {
      // If the reply took longer than the lease that it grants, the lease may be over. So the waiter asks again with
      // the same id. The answer is the same grant with a later deadline, or a new grant if the first has expired. The
      // waiter asks only once more, because the lease may be shorter than any round trip to Redis.
      const dead = answer.granted && answer.deadline <= this.#clock.now()
      if (dead && waiter.waits && !again) {
        again = true
        return void this.#send(waiter, join, reserve, true).then(answered, failed)
      }
      if (waiter.wish.mode === 'once') this.#single.answered(waiter)
      else if (attempt === 'as-head') this.#outage.answered(lock)
      else if (attempt === 'to-join') this.#endJoining(waiter)
      lock.answered(waiter, attempt, join, answer)
    }
    // Redis may execute an attempt after it has failed here. If the waiter has given up, a cleanup has been sent as
    // well, but Redis may execute the attempt after that cleanup. So `takeBack` sends another cleanup.
    const failed = (error: Error) => {
      if (!waiter.waits) lock.takeBack(waiter)
      if (attempt === 'to-re-enter') return
      this.#endJoining(waiter)
      lock.end(waiter, error)
      if (attempt === 'as-head') this.headFailed(lock, begun, error)
    }
    this.#send(waiter, join, reserve, attempt === 'to-re-enter' || waiter.answered).then(answered, failed)
  }

  headFailed(lock: Asker, begun: number, error: Error): void {
    this.#outage.failed(lock, begun, error)
    lock.line.failed()
  }

  /** Calls `giveUp` if a waiter that is about to ask for a place in the queue gets no answer in `patience` ms. */
  limitJoining(waiter: Waiter, patience: number, giveUp: () => void): void {
    this.#joining.set(waiter, this.#awake.after(patience, giveUp))
  }

  tend(lock: Asker, waiters: readonly Waiter[]): void {
    const { queue } = this.#kind
    if (!queue) return
    const queued = waiters.map(({ claim, place }) => ({ claim, ticket: ticketAt(place) }))
    queue.tend(lock.key, queued).then(
      answer => lock.queue.tended(waiters, answer),
      error => {
        // A failed heartbeat is sent again. If every heartbeat fails for `patience` ms, the waiter's wait ends.
        for (const waiter of waiters) {
          const silence = this.#clock.now() - (waiter.seen ?? waiter.since)
          if (silence >= this.#patience) lock.end(waiter, error)
        }
        lock.queue.tended(waiters, undefined)
      },
    )
  }

  leave({ claim }: Waiter): void {
    this.#cleanup.start(claim, () => this.#freed(claim.key))
  }

  undo(lock: Asker, waiter: Waiter): void {
    const { claim } = waiter
    this.#cleanup.start(claim, () => {
      this.#clock.after(UNDO_PAUSE, () => lock.undone(waiter))
      this.#freed(claim.key)
    })
  }

  #send({ claim }: Waiter, join: boolean, reserve: boolean, waits: boolean): Promise<Granted | Refused> {
    const { queue } = this.#kind
    return join && queue ? queue.join(claim, waits) : this.#kind.attempt(claim, reserve ? BLOCK : 0, waits)
  }

  #endJoining(waiter: Waiter): void {
    if (this.#joining.size === 0) return
    this.#joining.get(waiter)?.cancel()
    this.#joining.delete(waiter)
  }
}

function ticketAt(place: Place | undefined): string {
  return place?.is === 'queued' ? place.ticket : ''
}

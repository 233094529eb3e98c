/**
 * One attempt to take the lock, for whichever waiter and mode, and what its answer means to a waiter that may have been
 * granted, or have given up, while the answer was on its way.
 */
import type { Clock } from '../clock.ts'
import type { Channel, Granted, Kind, Refused, Via } from '../kind.ts'
import type { Ending } from './ending.ts'
import type { Room, Waiter } from './waiters.ts'

/** The channels of a key, as far as waiting needs them. Each `hear` is matched by one `drop`. */
export interface Channels {
  /** Undefined: heard already. A promise: heard when it resolves. */
  hear(key: string, channel: Channel): Promise<void> | undefined
  drop(key: string, channel: Channel): void
  /** Whether the server has confirmed that this client hears it, also where nobody needs it any more. */
  hears(key: string, channel: Channel): boolean
}

const already = Promise.resolve()

export class Asking {
  readonly #kind: Kind
  readonly #channels: Channels
  readonly #clock: Clock
  readonly #ending: Ending
  readonly #waiting: (waiter: Waiter) => void

  constructor(kind: Kind, channels: Channels, clock: Clock, ending: Ending, waiting: (waiter: Waiter) => void) {
    this.#kind = kind
    this.#channels = channels
    this.#clock = clock
    this.#ending = ending
    this.#waiting = waiting
  }

  attempt(waiter: Waiter, mode?: 'queue' | number): Promise<Granted | Refused> {
    waiter.seen ??= this.#clock.now()
    waiter.unanswered += 1
    if (mode === 'queue') waiter.askedToQueue = true
    // An attempt that fails stays unanswered: it may run yet.
    return this.#kind.attempt(waiter.claim, mode).then(answer => {
      const dead = answer.granted && answer.deadline <= this.#clock.now()
      if (!dead || waiter.state !== 'waiting') return this.#answered(waiter, mode, answer)
      // A grant whose reply was under way for longer than its lease proves nothing. The same id asks again: it gets the
      // same grant with a fresh proof, or another if that has lapsed. Once: a lease may be shorter than any way to Redis.
      return this.#kind.attempt(waiter.claim, mode).then(again => this.#answered(waiter, mode, again))
    })
  }

  #answered(waiter: Waiter, mode: 'queue' | number | undefined, answer: Granted | Refused): Granted | Refused {
    const queue = mode === 'queue'
    waiter.unanswered -= 1
    if (answer.granted) {
      this.#ending.grant(waiter, { ...answer, via: arrival(answer.via, waiter.parked) })
    } else if (waiter.state !== 'waiting') {
      // Queued by a request that was sent again, although its wait is over.
      if (queue) this.#ending.takeBack(waiter)
    } else if (queue || !waiter.askedToQueue) {
      this.#ending.refused(waiter, answer)
      this.park(waiter)
    }
    return answer
  }

  /** From now on the caller knows that it waits. */
  park(waiter: Waiter): void {
    if (waiter.parked || waiter.wish.mode === 'once') return
    waiter.parked = true
    this.#waiting(waiter)
  }

  /**
   * As `hear`, but goes on after `limit` ms, and where the way of messages is broken: that of commands may be open, and the
   * slow timer does without messages (I4). Rejects only what Redis refuses.
   */
  heed(room: Room, channel: Channel, limit: number): Promise<void> {
    const hearing = this.hear(room, channel)
    if (hearing === already) return hearing
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(limit, resolve)
      hearing
        .catch(error => {
          if (error.cause === undefined || error.cause.name === 'ReplyError') reject(error)
        })
        .then(() => {
          timer.cancel()
          resolve()
        })
    })
  }

  /** Resolves when the room hears the channel. One that cannot be heard is not counted as heard by the next waiter. */
  hear(room: Room, channel: Channel): Promise<void> {
    const known = room.heard[channel]
    if (known) return known
    const hearing = this.#channels.hear(room.key, channel)
    room.heard[channel] = hearing ?? already
    const listens = () => {
      if (channel === 'unlock') room.listening = true
    }
    if (!hearing) {
      listens()
      return already
    }
    hearing.then(listens, () => {
      if (room.heard[channel] !== hearing) return
      room.heard[channel] = undefined
      this.#channels.drop(room.key, channel)
    })
    return hearing
  }
}

/** A lock that was free when a parked waiter tried is a wake-up; one that had lapsed before anyone waited is not. */
function arrival(via: Via, waited: boolean): Via {
  if (via === 'immediate' && waited) return 'wakeup'
  if (via === 'expiry' && !waited) return 'immediate'
  return via
}

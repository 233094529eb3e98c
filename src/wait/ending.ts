/**
 * How a wait ends, for every waiter and every reason, and what is cleaned up behind it.
 *
 * A grant can come three ways (reply, message, heartbeat), more than once, and too late; the caller can give up at any
 * moment in between. Whichever is first settles the waiter. What comes for one that does not wait any more is taken back:
 * for one that ended without a grant at once; for one that was granted, only if its lease does not live, because most
 * likely it is the same grant, told twice. Where a grant has to be confirmed first, see confirming.ts.
 */
import type { Clock } from '../clock.ts'
import { LockClosedError } from '../errors.ts'
import type { Channel, Granted, Kind, Refused, Via } from '../kind.ts'
import { Confirming } from './confirming.ts'
import { Leaving } from './leaving.ts'
import type { Room, Waiter, Waiters } from './waiters.ts'

export interface Patience {
  /** Expiry of a queued waiter, in ms. */
  readonly waiterTtl: number
  /** How long waiters ride out a Redis that is out of reach, in ms. */
  readonly outage: number
}

export interface EndListener {
  /** Its wait is over. */
  settled(waiter: Waiter): void
  /** A waiter of this key holds now. */
  taken(key: string, via: Via): void
  /** Whether the client has made a lease of the grant to this id, and it has not ended. */
  holds(id: string): boolean
  /** Something failed that no promise reports. */
  failed(error: unknown): void
  /** A claim has been taken back: had it been granted, the lock is open now. */
  left(key: string): void
  /** Something said that the hold of this id may be gone; with a token: that it was granted anew with that. */
  doubt(id: string, token?: number): void
  /** A grant that did not count has been taken back: the waiter asks anew, with the place that it had. */
  again(waiter: Waiter): void
  /** The room does not need the channel any more. */
  drop(key: string, channel: Channel): void
}

export class Ending {
  readonly #waiters: Waiters
  readonly #clock: Clock
  readonly #leaving: Leaving
  readonly #listener: EndListener
  readonly #confirming: Confirming | undefined
  #closed = false

  constructor(waiters: Waiters, kind: Kind, clock: Clock, patience: Patience, listener: EndListener) {
    this.#waiters = waiters
    this.#clock = clock
    this.#listener = listener
    this.#leaving = new Leaving(kind, clock, patience.waiterTtl, error => listener.failed(error))
    this.#confirming =
      kind.confirm &&
      new Confirming(kind.confirm, clock, patience.outage, {
        granted: (waiter, grant) => {
          this.inherit(waiter, grant)
          // Who has come to stand behind it meanwhile looks for itself.
          listener.left(waiter.claim.key)
        },
        undo: (waiter, undone) => this.leave(waiter, undone),
        again: waiter => listener.again(waiter),
        end: (waiter, error) => this.end(waiter, error),
      })
  }

  /** The grant reaches the waiter; or, if that does not wait any more, goes back. */
  grant(waiter: Waiter, grant: Granted): void {
    if (waiter.state !== 'waiting') return this.takeBack(waiter, grant.token)
    if (this.#closed) {
      this.#settle(waiter, 'ended')
      this.leave(waiter)
      return waiter.settle(new LockClosedError(), waiter)
    }
    // Once: whoever forges that it was lost costs it an attempt, and no more.
    const lost = grant.token <= waiter.lost
    waiter.lost = 0
    if (lost && waiter.wish.mode !== 'once') return this.#listener.again(waiter)
    if (this.#confirming) this.#confirming.start(waiter, grant)
    else this.inherit(waiter, grant)
    if (lost) this.#listener.doubt(waiter.claim.id)
  }

  /** The waiter holds now. A hand-off within the client comes here at once: its hold has been confirmed before. */
  inherit(waiter: Waiter, grant: Granted): void {
    const room = this.#waiters.room(waiter.claim.key)
    if (room) {
      waiter.alone = room.alone
      if (room.releasedAt !== undefined) waiter.handoff = this.#clock.now() - room.releasedAt
      room.releasedAt = undefined
    }
    this.#listener.taken(waiter.claim.key, grant.via)
    this.#settle(waiter, 'granted')
    waiter.settle(grant, waiter)
  }

  /** The waiter has been refused, which says to all who wait with it who holds. */
  refused(waiter: Waiter, refusal: Refused): void {
    waiter.refusal = refusal
    const room = this.#waiters.room(waiter.claim.key)
    if (room) room.holder = refusal.holder
  }

  /** The wait is over without a grant; with an error, or because the caller has given up. */
  end(waiter: Waiter, error: Error | undefined): void {
    if (waiter.state !== 'waiting') return
    this.#settle(waiter, 'ended')
    if (waiter.leavesTrace) this.leave(waiter)
    waiter.settle(error, waiter)
  }

  /**
   * Redis knows the id as a waiter or a holder, though its wait is over. Where it was granted, that is most likely the
   * grant we know of; but a request that was sent again may also have run after the release, and have queued or granted
   * the id anew. The lease tells which; or Redis, where the lease lives and the token is newer.
   */
  takeBack(waiter: Waiter, token?: number): void {
    const { id } = waiter.claim
    if (waiter.state === 'ended' || !this.#listener.holds(id)) this.leave(waiter)
    else if (token !== undefined) this.#listener.doubt(id, token)
  }

  /** Takes back whatever became of the waiter's requests; calls `left` when that is done. */
  leave({ claim }: Waiter, left?: () => void): void {
    this.#leaving.start(claim, () => {
      left?.()
      this.#listener.left(claim.key)
    })
  }

  closeIfEmpty(room: Room): void {
    if (!room.empty || room.contending || room.tending) return
    room.timer?.cancel()
    room.turn?.cancel()
    for (const channel of Object.keys(room.heard) as Channel[]) {
      if (room.heard[channel]) this.#listener.drop(room.key, channel)
    }
    room.heard = {}
    this.#waiters.close(room)
  }

  /** No more grants: they go back. */
  refuse(): void {
    this.#closed = true
  }

  /** Resolves when everything under way has been taken back, as far as Redis answers. */
  close(): Promise<void> {
    return this.#leaving.close()
  }

  #settle(waiter: Waiter, state: 'granted' | 'ended'): void {
    waiter.state = state
    this.#listener.settled(waiter)
    const room = this.#waiters.remove(waiter)
    if (!room) return
    // In the line, the head's answers speak for everybody; the newest says best why the wait ended without a grant.
    const { refusal } = room
    if (refusal && !waiter.askedToQueue && refusal.sent > (waiter.refusal?.sent ?? 0)) waiter.refusal = refusal
    if (state === 'ended' && waiter.refusal) waiter.refusal = room.upToDate(waiter.refusal)
    this.closeIfEmpty(room)
  }
}

/**
 * What a kind of lock has to offer to the waiting and the renewing code, which know nothing else about it: no Redis, no
 * scripts, no keys. A kind supplies its admission rule; the hard parts (lost wake-up, grant after cancel, renewal racing
 * release, reconnect) exist once, above this line.
 *
 * Every call may be repeated with the same id without changing the outcome, and rejects only with a LockError.
 * All times are ms of the client's monotonic clock.
 */
import type { HolderInfo } from './errors.ts'

/** How a grant came about. */
export type Via = 'immediate' | 'handoff' | 'wakeup' | 'expiry' | 'reentry'

/** 'unlock': tells unfair waiters of a key that it is free. 'inbox': brings a client its grants. */
export type Channel = 'unlock' | 'inbox'

/** What one call asks for. */
export interface Claim {
  readonly key: string
  /** Unguessable; names the hold, and the waiter before it. */
  readonly id: string
  readonly owner: string
  /** ms */
  readonly lease: number
  /** ms by which the ticket is set back in the fair queue. */
  readonly headStart: number
}

export interface Granted {
  readonly granted: true
  readonly token: number
  /** Until when the hold is surely ours. */
  readonly deadline: number
  readonly via: Via
}

export interface Refused {
  readonly granted: false
  /** When the request was sent. */
  readonly sent: number
  /** ms until the holder's lease ends. */
  readonly ttl: number
  /** Place in the fair queue, from 1; 0: not queued. */
  readonly position: number
  /** The waiter's ticket, to join again with. */
  readonly ticket: string
  readonly holder: HolderInfo
  /** What the lock's clock showed: every grant since then has a larger token. */
  readonly clock: number
}

/** A waiter as `tend` needs it. */
export interface Queued {
  readonly claim: Claim
  readonly ticket: string
}

export interface Tended {
  readonly sent: number
  readonly ttl: number
  readonly holder: HolderInfo
  /** As in `Refused`. */
  readonly clock: number
  /** For each waiter its place, or the grant that it had missed. */
  readonly waiters: (number | Granted)[]
}

export interface Released {
  /** Whether this call ended a live hold. */
  readonly ended: boolean
  /** A waiter of this client that became the holder by this very release. */
  readonly successor?: { readonly id: string; readonly grant: Granted }
}

export interface Hold {
  readonly key: string
  readonly id: string
}

export interface Primitive {
  /** One attempt; with `queue`, joins the fair queue where it is refused. */
  attempt(claim: Claim, queue: boolean): Promise<Granted | Refused>
  /** Heartbeat of waiters of one key; finds grants whose message was lost, joins again those that are missing. */
  tend(key: string, waiters: readonly Queued[]): Promise<Tended>
  /** Takes back whatever became of a claim. */
  leave(claim: Claim): Promise<void>
  release(hold: Hold): Promise<Released>
  /** Prolongs holds by `ms` from now (0: confirms); for each its new deadline, or undefined if it is gone. */
  renew(holds: readonly { readonly hold: Hold; readonly ms: number }[]): Promise<(number | undefined)[]>
}

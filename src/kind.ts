/**
 * What a kind of lock has to offer to the waiting and the renewing code, which know nothing else about it: no Redis, no
 * scripts, no keys. A kind supplies its admission rule; the hard parts (lost wake-up, grant after cancel, renewal racing
 * release, reconnect) exist once, above this line.
 *
 * Every call may be repeated with the same id without changing the outcome, and rejects only with a LockError.
 * All times are ms of the client's monotonic clock.
 */

/**
 * How a grant came about. `immediate`: the lock was free. `handoff`: by the release of the holder before. `wakeup`: by an
 * attempt after a release. `expiry`: the lease of the holder before had ended. `reentry`: the owner held it already.
 * @since 0.1.0
 */
export type Via = 'immediate' | 'handoff' | 'wakeup' | 'expiry' | 'reentry'

/** 'unlock': tells unfair waiters of a key that it is free. 'inbox': brings a client its grants. */
export type Channel = 'unlock' | 'inbox'

/** What one call asks for. */
export interface Claim {
  readonly key: string
  /** Unguessable; names the hold, and the waiter before it. */
  readonly id: string
  readonly owner: string
  /** What others are shown of who waits or holds. */
  readonly label: string
  /** ms */
  readonly lease: number
  /** ms by which the ticket is set back in the fair queue. */
  readonly headStart: number
}

/** A client's inbox is named by so many characters, with which the ids of its waiters begin. lua/ knows the number. */
export const CLIENT_ID_LENGTH = 12

export interface Granted {
  readonly granted: true
  readonly token: number
  /** Until when the hold is surely ours. */
  readonly deadline: number
  readonly via: Via
  /** Tokens after `token` that are reserved for hand-offs within this client. */
  readonly block?: number
}

/** Who holds, as a client knows it. What others are told of it is made in that moment: for how long, is up to the time. */
export interface Holder {
  readonly label: string
  /** Since when, monotonic ms; or a little earlier, as an answer is counted from when its request was sent. */
  readonly since: number
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
  /** Undefined: not known any more, because it is known to have released since. */
  readonly holder: Holder | undefined
  /** The holder's name, if it has one: its owner's other waiters may re-enter. */
  readonly owner?: string | undefined
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
  readonly holder: Holder
  /** As in `Refused`. */
  readonly owner?: string | undefined
  readonly clock: number
  /** For each waiter its place, or the grant that it had missed. */
  readonly waiters: (number | Granted)[]
}

export interface Released {
  /** Whether this call ended a live hold. */
  readonly ended: boolean
  /** How many clients were told that the lock is free, this one included if it listens. */
  readonly heard: number
  /** A waiter of this client that became the holder by this very release. */
  readonly successor?: { readonly id: string; readonly grant: Granted }
}

/** What Redis knows a hold by. */
export interface HoldName {
  readonly key: string
  readonly id: string
}

/** Who has a lock since a hand-off within the client. */
export type Heir = Pick<Claim, 'owner' | 'label' | 'lease'>

/** A hold, and the token that it was granted with as far as its client knows. */
export interface Held {
  readonly hold: HoldName
  readonly token: number
}

export interface Prolonging extends Held {
  readonly ms: number
}

/**
 * The new deadline of a hold; undefined: it is gone. 'anew': so is that grant, but its id, which had waited again, has been
 * granted the lock since, with a larger token.
 */
export type Renewed = number | 'anew' | undefined

/** What Redis says when it is told of a hand-off within the client. */
export interface Passed {
  readonly deadline: number
  /** Whether fair waiters are queued. */
  readonly queued: boolean
}

export interface Kind {
  /**
   * One attempt; with 'queue' it joins the fair queue where it is refused, with a number it reserves so many tokens where
   * it is granted.
   */
  attempt(claim: Claim, mode?: 'queue' | number): Promise<Granted | Refused>
  /** Heartbeat of waiters of one key; finds grants whose message was lost, joins again those that are missing. */
  tend(key: string, waiters: readonly Queued[]): Promise<Tended>
  /** Takes back whatever became of a claim. */
  leave(claim: Claim): Promise<void>
  /** Gives back a grant that came for an id that nobody waits for any more. */
  giveBack(hold: HoldName): Promise<void>
  /** Ends a hold. `used`: the last token that was issued of its block, the rest of which goes back. */
  release(hold: HoldName, used?: number): Promise<Released>
  /** Records who holds under `hold` since a hand-off within the client; undefined: that hold is gone. */
  pass(hold: HoldName, heir: Heir, token: number): Promise<Passed | undefined>
  /**
   * Where a grant counts only once replicas have it: until when they do, as `renew`. Rejects where too few of them have it.
   */
  readonly confirm?: ((held: Held) => Promise<Renewed>) | undefined
  /** Locks of different places are renewed by calls of their own: where one place does not answer, the others do. */
  placeOf?(key: string): string
  /** Prolongs holds of one place by `ms` from now; 0: confirms. */
  renew(asked: readonly Prolonging[]): Promise<Renewed[]>
}

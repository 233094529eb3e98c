/**
 * What a kind of lock supplies: its admission rule. The code that waits and the code that keeps leases are written once
 * for all kinds. They solve the hard problems: lost wake-ups, grants after a cancel, renewals that race releases, and
 * reconnection. That code sees a kind only as a `Kind`, without Redis, scripts or names. A session makes the `Kind`
 * from a `KindDefinition`, which has the names and scripts.
 *
 * Every call of a `Kind` may be repeated with the same id; the outcome stays the same. A call rejects only with a
 * LockError. Times are in ms of the client's monotonic clock.
 */
import type { LockError } from './errors.ts'

/**
 * How a grant came about. `immediate`: the lock was free. `handoff`: the previous holder's release passed the lock to
 * this call. `wakeup`: a release woke this call, and its next attempt succeeded. `expiry`: the previous holder's lease
 * had ended. `reentry`: the owner already held the lock.
 * @since 0.1.0
 */
export type Via = 'immediate' | 'handoff' | 'wakeup' | 'expiry' | 'reentry'

/**
 * 'unlock': the channel on which the unfair waiters of a key receive the message that the lock is free. 'inbox': the
 * channel on which a client receives its grants.
 */
export type Channel = 'unlock' | 'inbox'

/** A client's subscriptions to the channels of a key. Each `hear` is matched by one `drop`. */
export interface Channels {
  /**
   * Subscribes to a channel. Returns a promise of the server's confirmation, or undefined if the server has already
   * confirmed the subscription.
   */
  hear(key: string, channel: Channel): Promise<void> | undefined
  drop(key: string, channel: Channel): void
  /** Returns whether the server has confirmed the subscription. May still be true after the last `drop`. */
  hears(key: string, channel: Channel): boolean
}

/** What one call of `lock` or `tryLock` asks for. */
export interface Claim {
  readonly key: string
  /** An unguessable id of the waiter, and later of its hold. */
  readonly id: string
  readonly owner: string
  /** The label under which other clients see the waiter or holder. */
  readonly label: string
  /** The length of the lease, in ms. */
  readonly lease: number
  /** The fair queue orders the waiter as if it had joined this many ms earlier. */
  readonly headStart: number
  /** How much of the lock the claim wants, as text in the kind's own format; undefined: all of it. */
  readonly wants?: string | undefined
}

/**
 * The length of a client's id. The id names the client's inbox, and the ids of the client's waiters begin with it. The
 * scripts in lua/ use the same length.
 */
export const CLIENT_ID_LENGTH = 12

export interface Granted {
  readonly granted: true
  readonly token: number
  /** The time until which this client certainly has the hold, in monotonic ms. */
  readonly deadline: number
  readonly via: Via
  /**
   * Set for a re-entry into a lock that several owners may hold: the id of the owner's first hold. If the first hold
   * belongs to this client, the client prolongs the first hold. The lease of the first hold then ends no earlier than
   * the lease of the re-entry.
   */
  readonly around?: string | undefined
  /** How many tokens after `token` are reserved for hand-offs within this client. */
  readonly block?: number
}

/**
 * The holder of a lock, as this client knows it. Errors and events compute from `since` how long the lock has been
 * held.
 */
export interface Holder {
  readonly label: string
  /**
   * When the hold began, in monotonic ms. The value may be a little too early, because the age that Redis reports is
   * subtracted from the time at which the request was sent.
   */
  readonly since: number
}

export interface Refused {
  readonly granted: false
  /** When the request was sent, in monotonic ms. */
  readonly sent: number
  /** How many ms were left of the holder's lease when the server answered. */
  readonly ttl: number
  /** The waiter's place in the fair queue, from 1; 0: not queued. */
  readonly position: number
  /** The waiter's ticket. If the waiter has to join the queue again, the ticket gives it its old place. */
  readonly ticket: string
  /** The holder; undefined once the client knows that the holder has released the lock. */
  readonly holder: Holder | undefined
  /** The holder's owner, if the caller gave one. Other waiters of this owner may re-enter. */
  readonly owner?: string | undefined
  /** The lock's token clock. Every later grant has a larger token. */
  readonly clock: number
}

/** A queued waiter, as `tend` needs it. */
export interface Queued {
  readonly claim: Claim
  readonly ticket: string
}

export interface Tended {
  readonly sent: number
  readonly ttl: number
  readonly holder: Holder
  /** As in `Refused`: the holder's owner, if the caller gave one. */
  readonly owner?: string | undefined
  readonly clock: number
  /** For each waiter, its place in the queue. If the message of a waiter's grant was lost, the grant instead. */
  readonly waiters: (number | Granted)[]
}

export interface Released {
  /** Whether this call ended a hold that was not lost. */
  readonly ended: boolean
  /** How many clients received the message that the lock is free. If this client listens, it is one of them. */
  readonly heard: number
  /** The waiters of this client that got the lock from this release. In an exclusive kind, at most one. */
  readonly successors?: readonly Successor[]
}

export interface Successor {
  readonly id: string
  readonly grant: Granted
}

/** What identifies a hold in Redis. */
export interface HoldName {
  readonly key: string
  readonly id: string
}

/** The waiter that gets a lock by a hand-off within the client. */
export type Heir = Pick<Claim, 'owner' | 'label' | 'lease'>

/** A hold, and the newest token that its client knows for this hold. */
export interface Held {
  readonly hold: HoldName
  readonly token: number
}

export interface Prolonging extends Held {
  readonly ms: number
}

/**
 * The result of a renewal. A number: the hold's new deadline, in monotonic ms. Undefined: the hold is gone. 'anew': the
 * hold is gone, but a waiter with the same id has got a new grant with a larger token. 'unknown': too few servers of a
 * quorum have answered.
 */
export type Renewed = number | 'anew' | 'unknown' | undefined

/** Redis's answer when a client records that it has handed a lock to another of its own waiters. */
export interface Passed {
  readonly deadline: number
  /** Whether fair waiters are queued. */
  readonly queued: boolean
}

/** A fair queue in Redis, ordered by tickets. */
export interface FairQueue {
  /** Makes one attempt. If the attempt is refused, the claim joins the queue. */
  join(claim: Claim): Promise<Granted | Refused>
  /**
   * Sends the heartbeat of the waiters of one key. The reply contains grants whose message was lost. If Redis has lost
   * a waiter from the queue, the heartbeat puts the waiter back.
   */
  tend(key: string, waiters: readonly Queued[]): Promise<Tended>
}

/**
 * Hand-off within a client: a lease passes to another waiter of the same client before Redis is informed. Each hand-off
 * uses one of the tokens that `attempt` reserved, so there are at most as many hand-offs as reserved tokens.
 */
export interface HandOff {
  /** Records in Redis that the waiter `heir` now has `hold`. Undefined: the hold is gone. */
  pass(hold: HoldName, heir: Heir, token: number): Promise<Passed | undefined>
}

/** Confirms that enough replicas have a grant. An unconfirmed grant does not count. */
export interface Confirmation {
  /**
   * Resolves to the result that `renew` has for one hold. A number is the time until which the replicas keep the hold.
   * Rejects if too few replicas have the grant.
   */
  confirm(held: Held): Promise<Renewed>
}

/**
 * What a vote asks of one server of a quorum. 'try': a single attempt. 'queue': an attempt that joins the queue if it
 * is refused. 'raise' and 'same' are for a hold that already has a majority. 'raise': if the server has the hold,
 * raises the hold's token on this server to `floor`. 'same' gives the hold exactly the token `floor`, and creates the
 * hold if the lock is free on this server.
 */
export type VoteMode = 'try' | 'queue' | 'raise' | 'same'

/** The answer of one server of a quorum. For 'raise' and 'same', undefined means: the id has no hold on that server. */
export type Vote = Granted | Refused | undefined

/** The lock on one server of a quorum. A call gets the lock if a majority of the servers grants it. */
export interface Voting {
  /**
   * Asks the server for a vote. Tokens and tickets that the server issues for this vote are at least `floor`, a whole
   * number of µs.
   */
  vote(claim: Claim, mode: VoteMode, floor: number): Promise<Vote>
}

/** Reads locks without taking them, and takes a lock away from its holders. `State`: the description of a lock. */
export interface Inspection<State> {
  inspect(key: string): Promise<State>
  isLocked(key: string): Promise<boolean>
  /**
   * Reads the lock's state. Undefined: the lock has neither holder nor queue, or the key in Redis is not that of a
   * lock.
   */
  find(key: string): Promise<State | undefined>
  /** Takes the lock from its holders; with `only`, from the holder with that id. False: there was no such holder. */
  forceRelease(key: string, only?: string): Promise<boolean>
}

/** A kind of lock in one client. If the kind lacks a feature, the property of that feature is undefined. */
export interface Kind<State = unknown> {
  /**
   * Whether several owners may hold the lock at a time. If so, the next attempt after a grant may be granted as well.
   */
  readonly shared: boolean
  /** Whether an owner that holds the lock may take it again. */
  readonly reentrant: boolean
  /**
   * Whether unfair waiters of different clients take turns (wait/turns.ts). Only true for kinds in which each release
   * lets exactly one next holder in.
   */
  readonly inTurns: boolean
  readonly queue: FairQueue | undefined
  readonly handOff: HandOff | undefined
  readonly confirmation: Confirmation | undefined
  readonly voting?: Voting | undefined
  readonly inspection: Inspection<State>
  /** Makes one attempt. If the attempt is granted, `reserve` tokens are reserved for hand-offs within the client. */
  attempt(claim: Claim, reserve: number): Promise<Granted | Refused>
  /** Withdraws a claim: removes the waiter from the queue, or releases its grant. */
  leave(claim: Claim): Promise<void>
  /** Gives back a grant whose waiter no longer waits. */
  giveBack(hold: HoldName): Promise<void>
  /** Ends a hold. `used`: the last token that this client issued in hand-offs; undefined: it issued none. */
  release(hold: HoldName, used?: number): Promise<Released>
  /**
   * Renews holds of one place (see `placeOf`). Each hold then lasts its `ms` from now. With `ms` 0, does not renew, but
   * returns whether the hold exists. With the option `replicas`, the hold must exist on enough replicas.
   */
  renew(asked: readonly Prolonging[]): Promise<Renewed[]>
  /**
   * Called after a re-entry with a longer lease. Returns the time until which the owner's first hold now lasts, in
   * monotonic ms. If a kind has no such method, the first hold lasts as long as the re-entry.
   */
  raised?(first: HoldName, longer: HoldName): number
  /**
   * Returns the place of a key: the part of Redis in which the key lies. Locks of different places are renewed by
   * separate calls, so a place that does not answer does not delay the renewals of other places.
   */
  placeOf(key: string): string
}

/**
 * Defines a kind of lock. There is one definition for each kind, and each client that uses the kind makes its own
 * `Kind`.
 */
export interface KindDefinition<State = unknown, S extends ScriptSet = ScriptSet, N extends Names = Names> {
  /**
   * A word, made of letters, that is a part of every Redis name of this kind; '' for the mutex. Because of this word,
   * the same key means a different lock in each kind.
   */
  readonly name: string
  /** Returns all Redis keys of a lock from its first key. Every other key begins with the first key. */
  namesOf(lock: string): N
  readonly scripts: S
  make(parts: Parts<S, N>): Kind<State>
}

/** What a client passes to `KindDefinition.make`. */
export interface Parts<S extends ScriptSet = ScriptSet, N extends Names = Names> {
  readonly names: KindNames<N>
  readonly scripts: Runner<S>
  /** Runs scripts, and waits until enough replicas confirm their effect. Undefined: no confirmation is required. */
  readonly replicated: Runner<S> | undefined
  /** After how many ms a waiter expires if it sends no heartbeat. */
  readonly waiterTtl: number
  /** Receives errors that no call reports. */
  readonly warn: (error: LockError) => void
  /** Returns a new, unguessable id. */
  readonly newId: () => string
}

/** The keys of a lock in Redis. All of them begin with the first one and have its hash tag. */
export interface Names {
  readonly lock: string
}

export interface KindNames<N extends Names = Names> {
  of(key: string): N
  /**
   * Returns the user's key for the first Redis key of a lock. Undefined: `lock` is not the name of a lock of this kind.
   */
  keyOf(lock: string): string | undefined
  /**
   * Returns the part of Redis in which a key lies. One script call can use several keys if they are in one place. A
   * single server is one place. In a cluster, all keys with the same hash tag are in one place.
   */
  placeOf(key: string): string
}

/** A script of lua/ after the build: the names from the script's header, and the script's text. */
export interface Script {
  readonly keys: readonly string[]
  readonly args: readonly string[]
  /** The status words of the script's replies. This property exists only in the type; it has no value at run time. */
  readonly replies?: readonly string[]
  /** The text that Redis runs. The client's Redis user needs the right to each command that the text calls. */
  readonly lua: string
}

export type ScriptSet = Readonly<Record<string, Script>>

/** The KEYS of a script, by their names in the script's header. The name `locks...` takes a list of keys. */
export type KeysOf<S extends Script> = { readonly [K in S['keys'][number]]: string | readonly string[] }
/** The ARGV of a script, by their names in the script's header. Only the last arguments may be undefined. */
export type ArgsOf<S extends Script> = {
  readonly [A in S['args'][number]]: string | number | undefined | readonly (string | number)[]
}

/**
 * A script's reply: a status word from its header, and the values that follow it. The replies that are sent most often
 * are one string with spaces between the words, because arrays take Redis and ioredis several µs longer.
 */
export interface Reply<S extends Script> {
  readonly status: NonNullable<S['replies']>[number]
  readonly values: unknown[]
  /** When the request was sent, in monotonic ms. */
  readonly sent: number
  /** Whether the same call was sent before without getting an answer. Redis may have executed it then. */
  readonly repeated: boolean
}

/**
 * Runs scripts by name. Rejects with LockConnectionError. Running a script twice has the same effect as running it
 * once.
 */
export interface Runner<S extends ScriptSet> {
  /**
   * Runs a script. `read` is called as soon as the reply has come. `read` returns the result, or a promise of the
   * result if it makes further calls.
   */
  run<N extends keyof S, T = Reply<S[N]>>(
    name: N,
    keys: KeysOf<S[N]>,
    args: ArgsOf<S[N]>,
    read?: (reply: Reply<S[N]>) => T | Promise<T>,
  ): Promise<T>
}

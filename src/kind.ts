/**
 * What a kind of lock supplies: its admission rule. The hard parts (lost wake-up, grant after cancel, renewal racing
 * release, reconnection) are written once, in the code that waits and the code that keeps leases. That code sees a kind
 * only as a `Kind`, without Redis, scripts or names. A session makes the `Kind` from a `KindDefinition`, which has the
 * names and scripts.
 *
 * Every call of a `Kind` may be repeated with the same id without changing the outcome, and rejects only with a
 * LockError. Times are in ms of the client's monotonic clock.
 */
import type { LockError } from './errors.ts'

/**
 * How a grant came about. `immediate`: the lock was free. `handoff`: the previous holder's release passed the lock on.
 * `wakeup`: an attempt after a release succeeded. `expiry`: the previous holder's lease had ended. `reentry`: the owner
 * already held the lock.
 * @since 0.1.0
 */
export type Via = 'immediate' | 'handoff' | 'wakeup' | 'expiry' | 'reentry'

/** 'unlock': tells unfair waiters of a key that it is free. 'inbox': brings a client its grants. */
export type Channel = 'unlock' | 'inbox'

/** A client's subscriptions to the channels of a key. Each `hear` is matched by one `drop`. */
export interface Channels {
  /** Subscribes to a channel. Returns undefined if it is heard already, or a promise of the server's confirmation. */
  hear(key: string, channel: Channel): Promise<void> | undefined
  drop(key: string, channel: Channel): void
  /** Returns whether the server has confirmed the subscription. May still be true after the last `drop`. */
  hears(key: string, channel: Channel): boolean
}

/** What one call asks for. */
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
 * The length of a client's id, which names its inbox. The ids of its waiters begin with it. lua/ relies on this number.
 */
export const CLIENT_ID_LENGTH = 12

export interface Granted {
  readonly granted: true
  readonly token: number
  /** Until when the hold is certainly ours, in monotonic ms. */
  readonly deadline: number
  readonly via: Via
  /**
   * Set for a re-entry into a lock that several owners may hold: the id of the owner's first hold. If this client has
   * that first hold, it prolongs the first hold's lease to last at least as long as the re-entry's.
   */
  readonly around?: string | undefined
  /** How many tokens after `token` are reserved for hand-offs within this client. */
  readonly block?: number
}

/** The holder, as this client knows it. Errors and events compute from it how long the lock has been held. */
export interface Holder {
  readonly label: string
  /**
   * When the hold began, in monotonic ms, or a little earlier: the age that Redis reports is subtracted from the time
   * when the request was sent.
   */
  readonly since: number
}

export interface Refused {
  readonly granted: false
  /** When the request was sent, in monotonic ms. */
  readonly sent: number
  /** How many ms were left of the holder's lease when the server answered. */
  readonly ttl: number
  /** The place in the fair queue, from 1; 0: not queued. */
  readonly position: number
  /** The waiter's ticket. With it, a waiter that has to join again keeps its place. */
  readonly ticket: string
  /** The holder; undefined once it is known to have released the lock. */
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
  /** For each waiter, its place in the queue, or the grant whose message it missed. */
  readonly waiters: (number | Granted)[]
}

export interface Released {
  /** Whether this call ended a live hold. */
  readonly ended: boolean
  /** How many clients received the message that the lock is free. Includes this client if it listens. */
  readonly heard: number
  /** The waiters of this client to which this release handed the lock. In an exclusive kind, at most one. */
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

/** The waiter that holds a lock after a hand-off within the client. */
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
 * hold is gone, but its id waited again, and now has a new grant with a larger token. 'unknown': too few servers of a
 * quorum have answered.
 */
export type Renewed = number | 'anew' | 'unknown' | undefined

/** Redis's answer when a client records a hand-off within itself. */
export interface Passed {
  readonly deadline: number
  /** Whether fair waiters are queued. */
  readonly queued: boolean
}

/** A fair queue in Redis, ordered by tickets. */
export interface FairQueue {
  /** Makes one attempt. If it is refused, the claim joins the queue. */
  join(claim: Claim): Promise<Granted | Refused>
  /**
   * Sends the heartbeat of the waiters of one key. It finds grants whose message was lost, and puts waiters back into
   * the queue that are no longer in it in Redis.
   */
  tend(key: string, waiters: readonly Queued[]): Promise<Tended>
}

/**
 * Hand-off within a client: a lease passes to another waiter of the same client before Redis is informed. Each hand-off
 * uses one of the tokens that `attempt` reserved, so their number limits the hand-offs.
 */
export interface HandOff {
  /** Records in Redis which waiter (`heir`) now has the hold with the name `hold`. Undefined: that hold is gone. */
  pass(hold: HoldName, heir: Heir, token: number): Promise<Passed | undefined>
}

/** Confirms that enough replicas have a grant. An unconfirmed grant does not count. */
export interface Confirmation {
  /** Resolves like `renew`, with the deadline in the replicas' copies. Rejects if too few replicas have the grant. */
  confirm(held: Held): Promise<Renewed>
}

/**
 * What a vote asks of one server of a quorum. 'try': a single attempt. 'queue': an attempt that joins the queue if it
 * is refused. 'raise' and 'same' are for a hold that already has a majority. 'raise' raises the hold's token on this
 * server to the floor, if the server has the hold. 'same' gives the hold exactly the token `floor`, and creates the
 * hold if the lock is free on this server.
 */
export type VoteMode = 'try' | 'queue' | 'raise' | 'same'

/** The answer of one server of a quorum. For 'raise' and 'same', undefined means: the id has no hold on that server. */
export type Vote = Granted | Refused | undefined

/** The lock on one server of a quorum. A majority of the servers has to grant it. */
export interface Voting {
  /** Asks for a vote. The server issues only tokens and tickets of at least `floor`, a whole number of µs, for it. */
  vote(claim: Claim, mode: VoteMode, floor: number): Promise<Vote>
}

/** Reads locks without taking them, and takes a lock away from its holders. `State`: the description of a lock. */
export interface Inspection<State> {
  inspect(key: string): Promise<State>
  isLocked(key: string): Promise<boolean>
  /** Reads the lock's state. Undefined: it has neither holder nor queue, or its key in Redis is not that of a lock. */
  find(key: string): Promise<State | undefined>
  /** Takes the lock from its holders; with `only`, from the holder with that id. False: there was no such holder. */
  forceRelease(key: string, only?: string): Promise<boolean>
}

/** A kind of lock in one client. A feature that the kind lacks is undefined. */
export interface Kind<State = unknown> {
  /** Whether several owners may hold the lock at a time. If so, one grant does not mean that the next is refused. */
  readonly shared: boolean
  /** Whether an owner that holds the lock may take it again. */
  readonly reentrant: boolean
  /**
   * Whether unfair waiters of different clients take turns (wait/turns.ts). Only for kinds in which a release frees the
   * lock for exactly one next holder.
   */
  readonly inTurns: boolean
  readonly queue: FairQueue | undefined
  readonly handOff: HandOff | undefined
  readonly confirmation: Confirmation | undefined
  readonly voting?: Voting | undefined
  readonly inspection: Inspection<State>
  /** Makes one attempt. A grant reserves this many tokens for hand-offs within the client. */
  attempt(claim: Claim, reserve: number): Promise<Granted | Refused>
  /** Withdraws a claim: removes the waiter from the queue, or releases its grant. */
  leave(claim: Claim): Promise<void>
  /** Gives back a grant whose waiter no longer waits. */
  giveBack(hold: HoldName): Promise<void>
  /** Ends a hold. `used`: the last token that this client issued in hand-offs; undefined: it issued none. */
  release(hold: HoldName, used?: number): Promise<Released>
  /**
   * Renews holds of one place, each to last its `ms` from now. With `ms` 0, only asks whether the hold exists (with the
   * option `replicas`: on enough replicas).
   */
  renew(asked: readonly Prolonging[]): Promise<Renewed[]>
  /**
   * Returns until when the owner's first hold lasts after a re-entry with a longer lease, in monotonic ms. Without this
   * method, the first hold lasts as long as the re-entry.
   */
  raised?(first: HoldName, longer: HoldName): number
  /**
   * Returns the place of a key: the part of Redis in which it lies. Locks of different places are renewed by separate
   * calls, so that a place that does not answer does not delay the others.
   */
  placeOf(key: string): string
}

/**
 * Defines a kind of lock. There is one definition for each kind, and each client that uses the kind makes its own
 * `Kind`.
 */
export interface KindDefinition<State = unknown, S extends ScriptSet = ScriptSet, N extends Names = Names> {
  /**
   * A word of letters that is part of every name in Redis, so that the same key means a different lock in each kind. ''
   * for the mutex.
   */
  readonly name: string
  /** Returns all Redis keys of a lock from its first key. The others begin with that key. */
  namesOf(lock: string): N
  readonly scripts: S
  make(parts: Parts<S, N>): Kind<State>
}

/** What a client passes to its kinds. */
export interface Parts<S extends ScriptSet = ScriptSet, N extends Names = Names> {
  readonly names: KindNames<N>
  readonly scripts: Runner<S>
  /** Runs scripts whose effect replicas must confirm; undefined: no confirmation is required. */
  readonly replicated: Runner<S> | undefined
  /** The expiry of a waiter, in ms. */
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
  /** Returns the user's key for a lock's first key in Redis; undefined: not the name of a lock of this kind. */
  keyOf(lock: string): string | undefined
  /**
   * Returns the part of Redis in which a key lies. One script call can have several keys of one place. A single server
   * is one place. In a cluster, all keys with the same hash tag are in one place.
   */
  placeOf(key: string): string
}

/** A script of lua/ as the build makes it: the names from its header, and its text. */
export interface Script {
  readonly keys: readonly string[]
  readonly args: readonly string[]
  /** The status words of its replies. Only the type exists; there is no value at run time. */
  readonly replies?: readonly string[]
  /** The text that Redis runs. The client's Redis user needs the right to each command that the text calls. */
  readonly lua: string
}

export type ScriptSet = Readonly<Record<string, Script>>

/** The KEYS of a script by the names in its header. `locks...` takes a list. */
export type KeysOf<S extends Script> = { readonly [K in S['keys'][number]]: string | readonly string[] }
/** The ARGV of a script by the names in its header. Only the last ones may be undefined. */
export type ArgsOf<S extends Script> = {
  readonly [A in S['args'][number]]: string | number | undefined | readonly (string | number)[]
}

/**
 * A script's reply: a status word from its header, and the values that follow it. Frequent replies are one string of
 * words separated by spaces, because arrays take Redis and ioredis several µs longer.
 */
export interface Reply<S extends Script> {
  readonly status: NonNullable<S['replies']>[number]
  readonly values: unknown[]
  /** When the request was sent, in monotonic ms. */
  readonly sent: number
  /** Whether an earlier sending of the same call may have been executed without an answer. */
  readonly repeated: boolean
}

/** Runs scripts by name. Rejects with LockConnectionError. Every script, and so `run`, may be repeated. */
export interface Runner<S extends ScriptSet> {
  /**
   * Runs a script. `read` is called as soon as the reply has come, and returns the result, or a promise of it if it
   * makes further calls.
   */
  run<N extends keyof S, T = Reply<S[N]>>(
    name: N,
    keys: KeysOf<S[N]>,
    args: ArgsOf<S[N]>,
    read?: (reply: Reply<S[N]>) => T | Promise<T>,
  ): Promise<T>
}

/**
 * What a kind of lock supplies: the rule by which it grants the lock. The code that waits and the code that keeps
 * leases are written once, for all kinds. This shared code solves the hard problems: lost wake-ups, grants after a
 * cancel, renewals that race releases, and reconnection. It sees a kind only as a `Kind`, which hides Redis, the
 * scripts and the names of the keys. The names and scripts are in a `KindDefinition`, from which session.ts makes the
 * `Kind`.
 *
 * Every call of a `Kind` may be repeated with the same id; the outcome stays the same. A call rejects only with a
 * LockError. Times are in ms of the client's monotonic clock.
 */
import type { Clock } from './clock.ts'
import type { LockError } from './errors.ts'
import type { HolderState, WaiterState } from './lock-state.ts'
import type { Outcome } from './outcome.ts'

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

/** A client's subscriptions to the channels of a key. Each `subscribe` is matched by one `unsubscribe`. */
export interface Channels {
  /**
   * Subscribes to a channel. Returns a promise of the server's confirmation, or undefined if the server has already
   * confirmed the subscription.
   */
  subscribe(key: string, channel: Channel): Promise<void> | undefined
  unsubscribe(key: string, channel: Channel): void
  /** Returns whether the server has confirmed the subscription. May still be true after the last `unsubscribe`. */
  isSubscribed(key: string, channel: Channel): boolean
}

/** What one call of `lock` or `tryLock` asks for. */
export interface Claim extends HoldName {
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
  /** For how many ms from the grant the lock stays taken at least, a whole number; undefined: 0. */
  readonly minHold?: number | undefined
  /** If so many waiters are queued, the claim does not join the queue: the attempt rejects with LockQueueFullError. */
  readonly maxWaiters?: number | undefined
}

/**
 * The length of a client's id. The id names the client's inbox, and the ids of the client's waiters begin with it. The
 * scripts in lua/ use the same length.
 */
export const CLIENT_ID_LENGTH = 12

/** Reads the numbers of permits, which Redis separates by periods. */
export function slotsOf(text: string): readonly number[] {
  return text.split('.').map(Number)
}

export interface Granted {
  readonly granted: true
  readonly token: number
  /** The time until which this client can rely on the hold, in monotonic ms. */
  readonly deadline: number
  /**
   * The end of the lease as Redis reports it, in monotonic ms. Set in two cases: the grant is a re-entry, or Redis had
   * already granted the lock to an earlier request with the same id. `deadline` counts at most one lease from the
   * present request, so `ends` may be later. One cause: the hold was prolonged after the earlier request. Another
   * cause: the server's clock was set back, so Redis reports more time than is left.
   */
  readonly ends?: number
  readonly via: Via
  /**
   * Set only if an owner re-enters a lock that several owners may hold: the id of that owner's first hold. If the new
   * hold has a longer lease, the client prolongs the first hold. Redis sends the id only if the first hold belongs to
   * this client, and both want the same (in a read-write lock: to read, or to write).
   */
  readonly around?: string | undefined
  /** How many tokens after `token` are reserved for hand-offs within this client. */
  readonly block?: number
  /** The numbers of the permits, if the claim asks for them. */
  readonly slots?: readonly number[] | undefined
}

/**
 * A grant of which a client does not learn by the answer to its waiter's request. A message of Redis does not say when
 * the grant was made, so it has no `deadline`, and the grant has to be proven.
 */
export interface Announced extends Omit<Granted, 'granted' | 'deadline'> {
  readonly deadline?: number | undefined
}

/**
 * The holder of a lock, as far as this client knows. Errors and events use `since` to say how long it has held the
 * lock.
 */
export interface Holder {
  readonly label: string
  /**
   * When the hold began, in monotonic ms. The value may be a little too early, because the age that Redis reports is
   * subtracted from the time at which the request was sent.
   */
  readonly since: number
  /** If the lock may have several holders: how many permits are taken, and how many holds there are. */
  readonly taken?: readonly [permits: number, holds: number] | undefined
}

export interface Refused {
  readonly granted: false
  /** When the request was sent, in monotonic ms. */
  readonly sent: number
  /** How many ms were left of the holder's lease when the server answered. */
  readonly ttl: number
  /** The waiter's place in the fair queue, from 1; 0: not queued. */
  readonly position: number
  /** The waiter's ticket. With the ticket, a waiter that has to join the queue again gets its old place. */
  readonly ticket: string
  /** The holder; undefined once the client knows that the holder has released the lock. */
  readonly holder: Holder | undefined
  /** The owner that the holder's call gave; undefined if it gave none. Other waiters of this owner may re-enter. */
  readonly owner?: string | undefined
  /** Every later grant of the lock has a token that is larger than this number. */
  readonly clock: number
  /** The expected wait of a queued waiter, in ms; undefined: too few holds have ended to estimate it. */
  readonly expected?: number | undefined
}

/** What a heartbeat (`tend`) sends for one queued waiter. */
export interface HeartbeatEntry {
  readonly claim: Claim
  readonly ticket: string
}

export interface HeartbeatReply {
  readonly sent: number
  readonly ttl: number
  readonly holder: Holder
  /** The owner that the holder's call gave; undefined if it gave none. */
  readonly owner?: string | undefined
  readonly clock: number
  /**
   * One entry for each waiter: its place in the queue, or its grant if it has been granted the lock already. The place
   * is negative if the waiter may re-enter, because its owner is one of several holders.
   */
  readonly waiters: (number | Granted)[]
  /** The expected wait of each waiter, as in `Refused`. If absent, there is no estimate. */
  readonly expected?: readonly (number | undefined)[]
}

export interface Released {
  /** Whether the hold still existed, so that this call ended it. */
  readonly ended: boolean
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
  /** As in the claim: the release of the hold has to say that there is one. */
  readonly minHold?: number | undefined
  /** The names of the lock's keys in Redis, once the kind has needed them. Only the kind writes it. */
  names?: Names | undefined
}

/** The waiter that gets a lock by a hand-off within the client. */
export type NextHolder = Pick<Claim, 'owner' | 'label' | 'lease'>

/** A hold, and the newest token that its client knows for this hold. */
export interface HoldRef {
  readonly hold: HoldName
  readonly token: number
}

export interface RenewalRequest extends HoldRef {
  readonly ms: number
}

/**
 * The outcome of a renewal. A number: the hold is renewed, until this time in monotonic ms. 'lost': the hold is gone.
 * 'replaced': the hold is gone, but the same id was granted the lock again, with a larger token. 'unknown': too few
 * servers of a quorum have answered.
 */
export type Renewed = number | 'lost' | 'replaced' | 'unknown'

/** Redis's answer when a client records that it has handed a lock to another of its own waiters. */
export interface Passed {
  readonly deadline: number
  /** Whether fair waiters are queued. */
  readonly queued: boolean
}

/**
 * What one server of a quorum is asked to do for a claim. 'try': make a single attempt. 'queue': make an attempt; if it
 * is refused, queue the claim. 'raise': if the server has granted this claim, raise the token of its hold to at least
 * `floor`. 'same' is for a hold that a majority has already granted: give the hold exactly the token `floor`; if the
 * lock is free on the server, create the hold. 'place': queue the claim with exactly the ticket `floor`; if the server
 * has voted for this claim with the token `returned`, give this vote back first.
 */
export type VoteMode = 'try' | 'queue' | 'raise' | 'same' | 'place'

/** The answer of one server of a quorum. For 'raise' and 'same', undefined means: the id has no hold on that server. */
export type Vote = Granted | Refused | undefined

/** Reads locks without taking them, and takes a lock away from its holders. `State`: the description of a lock. */
export interface Inspection<State> {
  inspect(key: string): Promise<State>
  isLocked(key: string): Promise<boolean>
  /**
   * Reads the lock's state. Undefined: the lock has neither holders nor waiters, or its key in Redis has a value of
   * another type.
   */
  find(key: string): Promise<State | undefined>
  /** Takes the lock from its holders; with `only`, from the holder with that id. False: there was no such holder. */
  forceRelease(key: string, only?: string): Promise<boolean>
}

/** What the rest of a client has to know of a kind. */
export interface KindTraits<State = unknown> {
  /** What messages call a lock of this kind. Default: "lock". */
  readonly noun?: string | undefined
  /**
   * Returns the words that come before the holder in a message, such as "3 of 3 permits are taken by 2 holders, the
   * first is". Undefined: "held by".
   */
  readonly heldBy?: ((holder: Holder, claim: Claim) => string | undefined) | undefined
  /** Whether several owners may hold the lock at a time. */
  readonly shared: boolean
  /** Whether an owner that holds the lock may take it again. */
  readonly reentrant: boolean
  /** Whether the lock has a fair queue; if not, all waiters are unfair, and the kind has no heartbeats. */
  readonly queues: boolean
  /** The options of calls that this kind does not have. */
  readonly lacks?: readonly ('maxWaiters' | 'rejectLate')[]
  /** The longest lease that a call or a renewal may ask for, in ms; absent: any. */
  readonly longestLease?: number
  /** Whether a hold counts only once enough replicas have it (the option `replicas`). `renew` then asks them. */
  readonly replicated?: boolean
  /**
   * Only if the locks are in the memory of this process, where no connection keeps it alive: this kind and its clock, for
   * what no caller waits for. Their timers do not keep the process alive either.
   */
  readonly background?: { readonly kind: Kind<State>; readonly clock: Clock } | undefined
}

/** A kind of lock in one client. If the kind lacks a feature, the method of that feature is absent. */
export interface Kind<State = unknown> {
  readonly traits: KindTraits<State>
  readonly inspection: Inspection<State>
  /**
   * Makes one attempt. With the mode 'queue', the claim joins the queue if it is refused. If a 'try' is granted,
   * `reserve` tokens are reserved for hand-offs within the client. `waits`: Redis has answered an earlier request of the
   * same call. Such a call was waiting before its owner began to hold elsewhere, so it is never refused as a deadlock.
   */
  attempt(claim: Claim, mode: 'try' | 'queue', reserve: number, waits: boolean, to: Outcome<Granted | Refused>): void
  /**
   * Sends the heartbeat of the queued waiters of one key. The reply contains grants whose message was lost. If Redis has
   * lost a waiter from the queue, the heartbeat puts the waiter back. Not called if the kind has no queue.
   */
  tend(key: string, waiters: readonly HeartbeatEntry[]): Promise<HeartbeatReply>
  /**
   * Records in Redis that the waiter `next` of this client now has `hold`: the lock passed to it by a hand-off within
   * the client, before Redis was informed. Each hand-off uses one of the tokens that Redis reserved with its grant.
   * Undefined: the hold is gone. Absent: no attempt reserves tokens.
   */
  pass?(hold: HoldName, next: NextHolder, token: number): Promise<Passed | undefined>
  /** Withdraws a claim: removes the waiter from the queue, or releases its grant. */
  leave(claim: Claim): Promise<void>
  /** Releases a grant whose waiter no longer waits. */
  giveBack(hold: HoldName): Promise<void>
  /** Ends a hold. `used`: the last token that this client issued in hand-offs; undefined: it issued none. */
  release(hold: HoldName, used: number | undefined, to: Outcome<Released>): void
  /**
   * Renews several holds whose keys are in one place (see `placeOf`). Each hold then lasts `ms` from now. A hold with
   * `ms` 0 is not renewed; the result says whether it exists, and until when. If the kind is `replicated`, rejects if too
   * few replicas have the holds.
   */
  renew(asked: readonly RenewalRequest[]): Promise<Renewed[]>
  /**
   * Returns those of the holds that Redis has. The keys of the holds are in one place (see `placeOf`). If this method is
   * absent, releases are not sent again after a failover. A quorum needs no such method: a release that one server lacks
   * is not missing on the others.
   */
  remaining?(holds: readonly HoldName[]): Promise<HoldName[]>
  /**
   * Called after an owner has re-entered with a longer lease than that of its first hold, and Redis has prolonged the
   * first hold. Returns the time until which the first hold now lasts, in monotonic ms. If this method is absent, the
   * client prolongs the first hold to the deadline of the new hold.
   */
  raised?(first: HoldName, longer: HoldName): number
  /**
   * Returns the place of a key: the part of Redis in which the key lies. Locks of different places are renewed by
   * separate calls, so a place that does not answer does not delay the renewals of other places.
   */
  placeOf(key: string): string
}

/** A kind that a server of a quorum may have. */
export interface VotingKind<State = unknown> extends Kind<State> {
  /**
   * Asks a server of a quorum for its vote; a call gets the lock if a majority of the servers grants it. `floor`: the
   * smallest token or ticket that the server may issue for this vote. Tokens and tickets come from the server's clock,
   * so the floor is a time too: a whole number of µs.
   */
  vote(claim: Claim, mode: VoteMode, floor: number, returned?: number): Promise<Vote>
}

/** The holders and waiters of one lock. */
export interface Found {
  /** The holders, in no particular order; of a mutex, all holds of the one owner, the oldest first. */
  readonly holders: readonly HolderState[]
  /** The waiters, in queue order. If there are two queues, all waiters of one come before all waiters of the other. */
  readonly waiters: readonly WaiterState[]
  /**
   * How many permits the lock has: the number that the newest call of a holder or waiter gave. Undefined if the lock
   * has no holders and no waiters.
   */
  readonly permits: number | undefined
  /** Only of a semaphore with groups: what decides in which order they take turns. */
  readonly turns?: GroupTags
  readonly pace: Pace | undefined
}

/** How long the last holds of a lock lasted that ended while callers were queued. */
export interface Pace {
  /** The mean in ms; of a semaphore, each hold counts as often as it had permits. */
  readonly hold: number
  /** How many readers wait for a read-write lock. */
  readonly readers: number
  /** Only of a semaphore with groups. */
  readonly crowd?: Crowd | undefined
}

/** How many wait for a semaphore with groups, and of some groups whose turn may come: what decides when, and how many wait. */
export type Crowd = readonly [
  waiters: number,
  some: readonly (readonly [group: number, start: number, rate: number, waiters: number])[],
]

/**
 * The turns of a claim's group: they come at its start tag, and then `rate` times while the virtual time grows by 1. So
 * many other groups have a turn before that of the claim. If the group is full: only its limit.
 */
export type Turn = readonly [limit: number] | readonly [group: number, start: number, rate: number, groups: number]

/** The place of a queued claim: its position, from 1, what is taken of the lock, and for how many ms a holder has held. */
export interface Standing {
  readonly position: number
  readonly taken: number | undefined
  readonly age: number
  /** If the lock has groups. The position is then inside the group of the claim. */
  readonly turn?: Turn | undefined
}

/** What a semaphore knows of its groups. */
export interface GroupTags {
  /** The start tag of the last grant (lua/groups.lua). */
  readonly virtual: number
  /** By the names of the groups; '' has the calls without a group. */
  readonly shares: ReadonlyMap<string, Share>
  /** For each holder and waiter, by its id: its ticket or token, and the limit of its group. */
  readonly asked: ReadonlyMap<string, { readonly at: number; readonly limit: number | undefined }>
}

export interface Share {
  /** The finish tag of the group's last grant. */
  readonly finish: number
  readonly weight: number
}

/** What a kind of lock is, wherever its locks are: in Redis, or in memory. */
export interface Traits<State = unknown> extends Pick<KindTraits, 'noun' | 'heldBy' | 'shared' | 'reentrant'> {
  /** If the kind is one side of a read-write lock: which one. */
  readonly mode?: 'read' | 'write'
  /** Replaces the `wants` of every claim of this kind. If undefined, each claim has a `wants` of its own. */
  readonly wants?: string
  /**
   * Returns a warning if this claim and a holder's claim do not agree on how many permits the lock has. `among`: the
   * number in the holder's claim; if the claim has a group, the limit and the weight that earlier calls gave it may
   * follow. `label`: the holder's label. Undefined: they agree.
   */
  differs?(claim: Claim, among: string, label: string): LockError | undefined
  /** Returns in how many ms a claim at this place will be granted the lock. `wants`: as in the claim. */
  expects(at: Standing, pace: Pace, wants: string | undefined): number
  /**
   * Turns holders and waiters into the state that `inspect` returns. `pause` lets the process do something else, if that
   * takes long; absent: it is done in one go.
   */
  stateOf(key: string, found: Found, pause?: () => Promise<void>): State | Promise<State>
}

/**
 * Defines a kind of lock. There is one definition for each kind, and each client that uses the kind makes its own
 * `Kind`. `S`: what each script takes, and the first words of its replies (src/kinds/scripts.ts).
 */
export interface KindDefinition<State = unknown, S = unknown> extends KeyForm {
  /** Absent: locks of this kind are only in Redis. */
  readonly traits?: Traits<State>
  /** The text of each script, as Redis runs it. The client's Redis user needs the right to each command in the text. */
  readonly scripts: { readonly [N in keyof S]: string }
  make(parts: Parts<S>): Kind<State>
}

/** How the keys of a kind are called in Redis. */
export interface KeyForm {
  /**
   * A word of letters, which is a part of the name of every key and channel of this kind in Redis; '' for the mutex. So
   * the same key means a different lock in each kind.
   */
  readonly name: string
  /** What the names of a lock's keys end in, in the order in which scripts take the keys. The first one is ''. */
  readonly suffixes: readonly string[]
  /** How many of the keys exist as long as the lock is held (lua/README.md). */
  readonly least: number
}

/** What a client passes to `KindDefinition.make`. */
export interface Parts<S = unknown> {
  readonly names: KindNames
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

/** The keys of a lock in Redis, or those for one call of a script. All keys of a lock have its hash tag. */
export interface Names {
  /** The first of the keys. */
  readonly lock: string
  readonly all: readonly string[]
  /** How many of them exist as long as the lock is held. */
  readonly least: number
}

export interface KindNames {
  of(key: string): Names
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

/**
 * A script's reply: a status word and the values that follow it. Redis sends the most frequent replies as one string,
 * whose parts are separated by spaces, because an array would take Redis and ioredis several µs longer.
 */
export interface Reply<Status = string> {
  readonly status: Status
  readonly values: unknown[]
  /** When the request was sent, in monotonic ms. */
  readonly sent: number
  /** Whether this request repeats an earlier one that got no answer. Redis may have executed the earlier one. */
  readonly repeated: boolean
}

/** The arguments of a script. Redis receives a list without names, so all behind an undefined one have to be undefined. */
export type Arguments = readonly (string | number | undefined)[]
type ArgumentsOf<F> = F extends (...args: infer A) => unknown ? Readonly<A> & Arguments : never
type ReplyOf<F> = Reply<F extends (...args: never) => infer Status ? Status : never>

/**
 * Runs scripts by name. Rejects with LockConnectionError. Running a script twice has the same effect as running it
 * once.
 */
export interface Runner<S> {
  /**
   * Runs a script. As soon as the reply arrives, `read` turns it into the result. If `read` has to run further scripts,
   * it returns a promise of the result.
   */
  run<N extends keyof S, T = ReplyOf<S[N]>>(
    name: N,
    keys: Names,
    args: ArgumentsOf<S[N]>,
    read?: (reply: ReplyOf<S[N]>) => T | Promise<T>,
  ): Promise<T>
  /** Does the same as `run`, and tells the outcome to an object. */
  post<N extends keyof S, T>(
    name: N,
    keys: Names,
    args: ArgumentsOf<S[N]>,
    read: (reply: ReplyOf<S[N]>) => T | Promise<T>,
    to: Outcome<T>,
  ): void
}

/**
 * Everything that a kind of lock supplies. `Kind` is all that waiting and leases know of it: no Redis, no scripts, no names.
 * A kind supplies its admission rule; the hard parts (lost wake-up, grant after cancel, renewal racing release,
 * reconnection) exist once, above this line. `KindDefinition` is how a session comes by it, with its names and scripts.
 *
 * Every call of a `Kind` may be repeated with the same id without changing the outcome, and rejects only with a LockError.
 * All times are ms of the client's monotonic clock.
 */
import type { LockError } from './errors.ts'

/**
 * How a grant came about. `immediate`: the lock was free. `handoff`: by the release of the holder before. `wakeup`: by an
 * attempt after a release. `expiry`: the lease of the holder before had ended. `reentry`: the owner held it already.
 * @since 0.1.0
 */
export type Via = 'immediate' | 'handoff' | 'wakeup' | 'expiry' | 'reentry'

/** 'unlock': tells unfair waiters of a key that it is free. 'inbox': brings a client its grants. */
export type Channel = 'unlock' | 'inbox'

/** The channels of a key, as far as waiting needs them. Each `hear` is matched by one `drop`. */
export interface Channels {
  /** Undefined: heard already. A promise: heard when it resolves. */
  hear(key: string, channel: Channel): Promise<void> | undefined
  drop(key: string, channel: Channel): void
  /** Whether the server has confirmed that this client hears it, also where nobody needs it any more. */
  hears(key: string, channel: Channel): boolean
}

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
  /** How much of the lock it wants, in the words of its kind; undefined: all of it. */
  readonly wants?: string | undefined
}

/** A client's inbox is named by so many characters, with which the ids of its waiters begin. lua/ knows the number. */
export const CLIENT_ID_LENGTH = 12

export interface Granted {
  readonly granted: true
  readonly token: number
  /** Until when the hold is surely ours. */
  readonly deadline: number
  readonly via: Via
  /** Of a re-entry where several may hold: the id of its owner's first hold, which lasts as long, as far as this client has it. */
  readonly around?: string | undefined
  /** So many tokens after `token` are for hand-offs within this client. */
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
  /** The waiters of this client that became holders by this very release; of an exclusive kind one at most. */
  readonly successors?: readonly Successor[]
}

export interface Successor {
  readonly id: string
  readonly grant: Granted
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
 * granted the lock since, with a larger token. 'unknown': too few of several servers have said what has become of it.
 */
export type Renewed = number | 'anew' | 'unknown' | undefined

/** What Redis says when it is told of a hand-off within the client. */
export interface Passed {
  readonly deadline: number
  /** Whether fair waiters are queued. */
  readonly queued: boolean
}

/** A fair queue in Redis, in the order of its tickets. */
export interface FairQueue {
  /** One attempt, which joins the queue where it is refused. */
  join(claim: Claim): Promise<Granted | Refused>
  /** Heartbeat of waiters of one key; finds grants whose message was lost, joins again those that are missing. */
  tend(key: string, waiters: readonly Queued[]): Promise<Tended>
}

/** A lease may be handed on to another waiter of its client before Redis is told: to as many as `attempt` has reserved tokens. */
export interface HandOff {
  /** Records who holds under `hold` since a hand-off; undefined: that hold is gone. */
  pass(hold: HoldName, heir: Heir, token: number): Promise<Passed | undefined>
}

/** A grant counts only once replicas have it. */
export interface Confirmation {
  /** Until when they do, as `renew`. Rejects where too few of them have it. */
  confirm(held: Held): Promise<Renewed>
}

/**
 * How a server is asked that is one of several. `try`: one attempt. `queue`: one that joins the queue where it is refused. The others are
 * about a hold that counts already: `raise` gives it a token that is not below the floor, if it is there; `same` gives it just this token,
 * and makes it where the lock is free.
 */
export type VoteMode = 'try' | 'queue' | 'raise' | 'same'

/** What a server answers that is one of several; undefined: to 'raise' or 'same', that the id holds nothing there. */
export type Vote = Granted | Refused | undefined

/** A lock that may be one of several, of which a majority grants. */
export interface Voting {
  /** `floor`: µs, a whole number. No token or ticket that the server issues for this is smaller. */
  vote(claim: Claim, mode: VoteMode, floor: number): Promise<Vote>
}

/** Looks at locks from outside, and takes one away. `State`: what is shown of a lock. */
export interface Inspection<State> {
  inspect(key: string): Promise<State>
  isLocked(key: string): Promise<boolean>
  /** As `inspect`. Undefined: nobody holds it or is queued for it, or what stands there is no lock. */
  find(key: string): Promise<State | undefined>
  /** Takes the lock from those who hold it now, or `only` from the holder of this id. False: none of them does. */
  forceRelease(key: string, only?: string): Promise<boolean>
}

/** A kind of lock in one client. What it need not have is undefined where it has not; nothing else has to be asked then. */
export interface Kind<State = unknown> {
  /** Whether several owners may hold at a time: after a grant there may be more to have. */
  readonly shared: boolean
  /** Whether an owner that holds it is granted it again. */
  readonly reentrant: boolean
  /** Whether clients leave it to each other: it goes from one to the next, and to nobody else. */
  readonly inTurns: boolean
  readonly queue: FairQueue | undefined
  readonly handOff: HandOff | undefined
  readonly confirmation: Confirmation | undefined
  readonly voting?: Voting | undefined
  readonly inspection: Inspection<State>
  /** One attempt, which reserves so many tokens for hand-offs where it is granted. */
  attempt(claim: Claim, reserve: number): Promise<Granted | Refused>
  /** Takes back whatever became of a claim. */
  leave(claim: Claim): Promise<void>
  /** Gives back a grant that came for an id that nobody waits for any more. */
  giveBack(hold: HoldName): Promise<void>
  /** Ends a hold. `used`: the last token that its client has issued by itself; undefined: none besides that of the grant. */
  release(hold: HoldName, used?: number): Promise<Released>
  /** Prolongs holds of one place by `ms` from now; 0: confirms. */
  renew(asked: readonly Prolonging[]): Promise<Renewed[]>
  /**
   * Until when the first hold of a client lasts, on its monotonic clock, after a longer re-entry has raised it. Without this method: as long
   * as the re-entry.
   */
  raised?(first: HoldName, longer: HoldName): number
  /** Locks of different places are renewed by calls of their own: where one place does not answer, the others do. */
  placeOf(key: string): string
}

/** What makes a kind, and what it needs: there is one for each kind, and one `Kind` of it in each client that uses it. */
export interface KindDefinition<State = unknown, S extends ScriptSet = ScriptSet, N extends Names = Names> {
  /** A word of letters that stands in every name in Redis, so that a key names another lock in each kind; '' in those of the mutex. */
  readonly name: string
  /** The keys of the lock whose first key has this name, which the others begin with. */
  namesOf(lock: string): N
  readonly scripts: S
  make(parts: Parts<S, N>): Kind<State>
}

/** What a kind gets from its client. */
export interface Parts<S extends ScriptSet = ScriptSet, N extends Names = Names> {
  readonly names: KindNames<N>
  readonly scripts: Runner<S>
  /** Runs scripts whose effect replicas must have; undefined: none must. */
  readonly replicated: Runner<S> | undefined
  /** Expiry of a waiter, in ms. */
  readonly waiterTtl: number
  /** For what no call reports. */
  readonly warn: (error: LockError) => void
  /** A new name that nobody can guess. */
  readonly newId: () => string
}

/** The keys of a lock in Redis. All begin with the first one, and have its hash tag. */
export interface Names {
  readonly lock: string
}

export interface KindNames<N extends Names = Names> {
  of(key: string): N
  /** The user's key of a lock's first key; undefined: it is none of this kind. */
  keyOf(lock: string): string | undefined
  /** Keys with the same answer can go into one script call: all of them; in a cluster, those with the same hash tag. */
  placeOf(key: string): string
}

/** A script of lua/ as the build makes it: the names in its header, and its text. */
export interface Script {
  readonly keys: readonly string[]
  readonly args: readonly string[]
  /** The words that its replies begin with. Never there: it is their type that counts. */
  readonly replies?: readonly string[]
  /** What Redis runs. The client's user needs the right to each command that is called in it. */
  readonly lua: string
}

export type ScriptSet = Readonly<Record<string, Script>>

/** The KEYS of a script by the names in its header; `locks...` takes a list. */
export type KeysOf<S extends Script> = { readonly [K in S['keys'][number]]: string | readonly string[] }
/** The ARGV of a script by the names in its header; undefined ones may only be the last. */
export type ArgsOf<S extends Script> = {
  readonly [A in S['args'][number]]: string | number | undefined | readonly (string | number)[]
}

/**
 * What a script replied: a status word of its header, and what that word brings. The frequent replies are texts, whose
 * words are strings here: Redis and ioredis take several µs more for an array.
 */
export interface Reply<S extends Script> {
  readonly status: NonNullable<S['replies']>[number]
  readonly values: unknown[]
  /** When the request left. */
  readonly sent: number
  /** Whether an earlier sending of the same call had an unknown outcome. */
  readonly repeated: boolean
}

/** Runs scripts by name. Rejects with LockConnectionError. Safe to repeat: so is every script. */
export interface Runner<S extends ScriptSet> {
  /** `read`: what to make of the reply, in the moment when it has come; a promise, where more has to be asked for it. */
  run<N extends keyof S, T = Reply<S[N]>>(
    name: N,
    keys: KeysOf<S[N]>,
    args: ArgsOf<S[N]>,
    read?: (reply: Reply<S[N]>) => T | Promise<T>,
  ): Promise<T>
}

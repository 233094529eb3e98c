/** The options of a client and of a call, as users write them. settings.ts checks them and fills in the defaults. */

/**
 * Options of one call of `lock`, `tryLock`, `using` or `wrap`. Times are in ms. An option whose value is undefined
 * counts as absent.
 * @since 0.1.0
 */
export interface LockOptions {
  /**
   * The longest time to wait, in ms. After this time, `lock` rejects with LockTimeoutError, and `tryLock` resolves to
   * null. With `0`, the call makes a single attempt. With `Infinity`, the call waits without limit.
   * @defaultValue the client's `timeout`. If the client has none either, `lock` waits without limit and `tryLock` makes
   *   a single attempt
   * @since 0.1.0
   */
  timeout?: number | undefined
  /**
   * Aborting this signal rejects the call at once with `signal.reason`. Any number of calls may share one signal.
   * @defaultValue none
   * @since 0.1.0
   */
  signal?: AbortSignal | undefined
  /**
   * The length of the lease, in ms. If this option is given, the lease is renewed only if `renew` is true. With a short
   * lease, a crashed holder blocks others for less time. With a long lease, there are fewer renewals, and the hold
   * survives a longer pause of its process.
   * @defaultValue the client's `lease`, and the lease is renewed automatically
   * @since 0.1.0
   */
  lease?: number | undefined
  /**
   * Whether the lease is renewed automatically, each time a third of its length has passed.
   * @defaultValue `false` if the option `lease` is given, otherwise `true`
   * @since 0.1.0
   */
  renew?: boolean | undefined
  /**
   * Automatic renewal stops this many ms after the grant, so that a hung job cannot hold the lock forever.
   * @defaultValue none: renewal does not stop
   * @since 0.1.0
   */
  maxHold?: number | undefined
  /**
   * If true, a queue in Redis serves callers in the order in which they ask. If false, the first caller to ask after a
   * release gets the lock, which is faster under contention. Such an unfair caller joins the queue when it has waited
   * for `fairAfter` ms.
   * @defaultValue the client's `fair`
   * @since 0.1.0
   */
  fair?: boolean | undefined
  /**
   * With `fair: false`, a caller that has waited this many ms joins the fair queue, so no caller waits for ever. With
   * `Infinity`, the caller never joins the queue, and other callers may overtake it without limit.
   * @defaultValue the client's `fairAfter`
   * @since 0.1.0
   */
  fairAfter?: number | undefined
  /**
   * The fair queue orders this call as if it had been made this many ms earlier. So the call overtakes only waiters
   * that have waited for less than this time. If the call is unfair, the option takes effect when the call joins the
   * queue. An unfair call with `fairAfter: Infinity` never joins the queue, so with a `headStart` it rejects with
   * LockArgumentError.
   * @defaultValue `0`
   * @since 0.1.0
   */
  headStart?: number | undefined
  /**
   * The identity of the caller, of 1 to 1024 UTF-8 bytes. If the owner already holds the lock, a call with the same
   * owner re-enters, also from another process.
   * @defaultValue the owner set by `runAs`, or by a surrounding `locks.using(key, …)` of the same key; otherwise each
   *   call has an identity of its own
   * @since 0.1.0
   */
  owner?: string | undefined
  /**
   * A label for this call, of at most 1024 UTF-8 bytes. While the call waits or holds, other clients see the label in
   * `inspect` and in timeout errors.
   * @defaultValue the client's `label`
   * @since 0.2.0
   */
  label?: string | undefined
  /**
   * The number of waiting callers from which on no more may wait: if so many are in the fair queue already, the call
   * rejects with LockQueueFullError at once, unless the lock is free or the call re-enters. `0`: the call never waits.
   * With this option the call joins the queue at once, as with `fair: true`, so the server decides. A single attempt
   * never waits, so the option has no effect on it.
   * @defaultValue none: any number of callers may wait
   * @since 0.2.0
   */
  maxWaiters?: number | undefined
  /**
   * For how many ms from the grant the lock stays taken at least, even if the lease is released earlier, or its process
   * ends. For its caller, a released hold is over: `release` resolves at once, nothing renews the hold, and its owner
   * does not re-enter. `forceRelease` ends it. May be longer than the lease. Re-entries do not change it.
   * @defaultValue `0`
   * @since 0.2.0
   */
  minHold?: number | undefined
  /**
   * If true, and the call's expected wait is longer than its `timeout`, the call ends at once, as if the timeout had
   * passed: `lock` rejects with LockTimeoutError, and `tryLock` resolves to null. The wait is estimated from the last
   * holds that ended while callers were queued; if these are fewer than 8, the call waits. The call joins the fair queue
   * at once, as with `fair: true`, because only there it has a place. Without a `timeout`, the option has no effect.
   * @defaultValue `false`
   * @since 0.2.0
   */
  rejectLate?: boolean | undefined
}

/**
 * Options of one call on a semaphore.
 * @since 0.2.0
 */
export interface SemaphoreOptions extends LockOptions {
  /**
   * How many permits this call takes, from 1 to the number of permits of the semaphore.
   * @defaultValue `1`
   * @since 0.2.0
   */
  permits?: number | undefined
  /**
   * The group whose turn this call takes, of 1 to 1024 UTF-8 bytes: a tenant, for instance. The groups of a semaphore
   * take turns, by their weights, and inside a group calls are served in the order in which they ask. A call with a group
   * joins the queue at once, so `fair` and `fairAfter` have no effect; a single attempt is granted only if it would be
   * first.
   * @defaultValue none: the calls without a group take turns with the groups, as one more group
   * @since 0.2.0
   */
  group?: string | undefined
  /**
   * How many permits the group may have at a time, at least the `permits` of this call. If the group has no room for its
   * first waiter, the other waiters of the group wait too, and all other calls pass them. Each call is limited by the
   * number that it gives.
   * @defaultValue none: the group may have all permits
   * @since 0.2.0
   */
  groupLimit?: number | undefined
  /**
   * How many permits the group gets for each permit of a group of weight 1, while both have waiters. A finite number above
   * 0; a weight below 1e-6 or above 1e6 counts as that number. The newest weight counts for the whole group.
   * @defaultValue the weight that the group has; `1` if no call has given one
   * @since 0.2.0
   */
  groupWeight?: number | undefined
  /**
   * If true, the lease has the numbers of its permits, `lease.slots`: the smallest from 0 that no other live hold with
   * this option has. They are less than the number of permits that this call gives for the semaphore.
   * @defaultValue `false`: the permits have no numbers, and reserve none
   * @since 0.2.0
   */
  slots?: boolean | undefined
}

/**
 * Options of `LockClient.close`. An option whose value is undefined counts as absent.
 * @since 0.2.0
 */
export interface CloseOptions {
  /**
   * How many ms holders get to release their locks before `close` ends all holds. The leases are renewed meanwhile.
   * @defaultValue `0`
   * @since 0.2.0
   */
  drain?: number | undefined
}

/**
 * Options of a LockClient. Times are in ms. An option whose value is undefined counts as absent.
 * @since 0.1.0
 */
export interface ClientOptions {
  /**
   * The first part of every key and channel in Redis. Clients share locks only if they have the same prefix.
   * @defaultValue `'lock'`
   * @since 0.1.0
   */
  prefix?: string | undefined
  /**
   * The length of the lease of calls without the option `lease`, in ms. The lease is renewed automatically, each time a
   * third of its length has passed.
   * @defaultValue `30_000`
   * @since 0.1.0
   */
  lease?: number | undefined
  /**
   * How long a waiter stays in the fair queue without a heartbeat, in ms. Its client sends a heartbeat after each third
   * of that time. If the process of a waiter dies, the waiter can delay others for up to `waiterTtl`. If a message to a
   * waiter is lost, this is noticed within a third of `waiterTtl`.
   * @defaultValue `10_000`
   * @since 0.1.0
   */
  waiterTtl?: number | undefined
  /**
   * How many ms Redis keeps the token clock of a free lock after the lock's last use. The token clock is a number in
   * Redis that makes each new fencing token of the lock larger than the earlier ones.
   * @defaultValue `600_000`
   * @since 0.1.0
   */
  tokenMemory?: number | undefined
  /**
   * The default of the call option with the same name.
   * @defaultValue `false`
   * @since 0.1.0
   */
  fair?: boolean | undefined
  /**
   * The default of the call option with the same name, in ms. With `Infinity`, unfair callers never join the queue.
   * @defaultValue `50`
   * @since 0.1.0
   */
  fairAfter?: number | undefined
  /**
   * The default of the call option with the same name, in ms. With `Infinity`, calls wait without limit.
   * @defaultValue none
   * @since 0.1.0
   */
  timeout?: number | undefined
  /**
   * How many ms a pending call tolerates an unreachable Redis before it rejects with LockConnectionError.
   * @defaultValue `15_000`
   * @since 0.1.0
   */
  outageTimeout?: number | undefined
  /**
   * The label of calls without the option `label`, of at most 1024 UTF-8 bytes. While such a call waits or holds, other
   * clients see the label in `inspect` and in timeout errors.
   * @defaultValue `host:pid`, in a worker thread `host:pid/threadId`
   * @since 0.1.0
   */
  label?: string | undefined
  /**
   * How many replicas must have a grant before the call gets its lease.
   * @defaultValue none: it is enough that the master has the grant
   * @since 0.1.0
   */
  replicas?: Replicas | undefined
}

/**
 * How many replicas must have a grant before the call gets its lease. The same number of replicas must have each
 * renewal of the lease. If too few replicas have a grant in time, the lock is released, and the call asks for it again,
 * so it may lose its place in the queue. After at most `outageTimeout` ms, the call rejects with LockConnectionError. A
 * call that makes a single attempt rejects at once.
 * @since 0.1.0
 */
export interface Replicas {
  /** How many replicas must confirm a grant or a renewal: at least 1. @since 0.1.0 */
  min: number
  /**
   * How long to wait for the replicas after each grant or renewal, in ms. The value may be at most a quarter of
   * `outageTimeout`, and at most 3,750.
   * @since 0.1.0
   */
  timeout: number
  /**
   * Whether the replicas must also have written the grant or the renewal to disk. This requires a server with the
   * command WAITAOF, and replicas with an append-only file.
   * @defaultValue `false`
   * @since 0.1.0
   */
  fsync?: boolean | undefined
}

/** The state of a lock, as `inspect` returns it. */

/**
 * A waiter of the fair queue.
 * @since 0.1.0
 */
export interface WaiterState {
  /** The `id` of the lease that the waiter will get. @since 0.1.0 */
  readonly id: string
  /** The `owner` that the waiter's call gave, or a unique id if it gave none. @since 0.1.0 */
  readonly owner: string
  /** The `label` that the waiter's call gave; if it gave none, the label of its client. @since 0.1.0 */
  readonly label: string
  /** For a read-write lock: whether the waiter waits to read or to write. @since 0.2.0 */
  readonly mode?: 'read' | 'write'
  /** For a semaphore: how many permits the waiter wants. @since 0.2.0 */
  readonly permits?: number
  /** For a semaphore: the group of the waiter's call, if it gave one. @since 0.2.0 */
  readonly group?: string
  /**
   * For a semaphore with groups: why the waiter waits. `group`: its group has no room for its first waiter. `permits`:
   * it is next, and too few permits are free. `turn`: another waiter is before it.
   * @since 0.2.0
   */
  readonly why?: 'permits' | 'group' | 'turn'
  /**
   * The waiter's place in the order of grants as of now, from 1. The waiters of full groups are last.
   * @since 0.1.0
   */
  readonly position: number
  /** ms since the waiter joined. @since 0.1.0 */
  readonly waited: number
  /** ms until the waiter expires and is skipped, unless its process sends a heartbeat first. @since 0.1.0 */
  readonly expiresIn: number
  /**
   * ms until its grant, estimated from the last holds that ended while callers were queued, at most 32. Absent until
   * there were 8 of them.
   * @since 0.2.0
   */
  readonly expected?: number
}

/**
 * A holder of a lock.
 * @since 0.2.0
 */
export interface HolderState {
  /** The `id` of the holder's lease; if its owner has re-entered, the `id` of the first lease. @since 0.2.0 */
  readonly id: string
  /** The `owner` that the holder's call gave, or a unique id if it gave none. @since 0.2.0 */
  readonly owner: string
  /** The `label` that the holder's call gave; if it gave none, the label of its client. @since 0.2.0 */
  readonly label: string
  /** For a read-write lock: whether the holder reads or writes. @since 0.2.0 */
  readonly mode?: 'read' | 'write'
  /** For a semaphore: how many permits the holder has taken. @since 0.2.0 */
  readonly permits?: number
  /** For a semaphore: the group of the holder's call, if it gave one. @since 0.2.0 */
  readonly group?: string
  /** For a semaphore: the numbers of these permits, if the holder's call has asked for them. @since 0.2.0 */
  readonly slots?: readonly number[]
  /** The fencing token of the holder's grant. @since 0.2.0 */
  readonly fencingToken: number
  /** ms since the holder's grant. @since 0.2.0 */
  readonly heldFor: number
  /** ms until the holder's lease ends; if its `minHold` ends later, until then. @since 0.2.0 */
  readonly ttl: number
}

/**
 * A group of a semaphore.
 * @since 0.2.0
 */
export interface GroupState {
  /** The name of the group; empty: the calls without a group. @since 0.2.0 */
  readonly group: string
  /** How many permits its holders have taken. @since 0.2.0 */
  readonly taken: number
  /** How many permits it may have at a time, according to the newest call; absent: as many as there are. @since 0.2.0 */
  readonly limit?: number
  /** How many permits it gets for each permit of a group of weight 1, while both have waiters. @since 0.2.0 */
  readonly weight: number
  /** How many of its callers wait in the queue. @since 0.2.0 */
  readonly waiting: number
}

/**
 * The state of a lock at one moment. If it has more than 500 holders or waiters, it is read in several parts, and those
 * that go meanwhile may be missing. `owner`, `label`, `fencingToken` and `ttl` are present while the lock is held.
 * @since 0.1.0
 */
export interface LockState {
  /** The key of the lock. @since 0.1.0 */
  readonly key: string
  /** The kind of the lock. Locks of different kinds may have the same key. @since 0.2.0 */
  readonly kind: 'mutex' | 'readWrite' | 'semaphore'
  /** Whether the lock is held. @since 0.1.0 */
  readonly locked: boolean
  /** The `owner` that the holder's call gave, or a unique id if it gave none. @since 0.1.0 */
  readonly owner?: string
  /** The `label` that the holder's call gave; if it gave none, the label of its client. @since 0.1.0 */
  readonly label?: string
  /** The number of live holds. In a mutex, it is more than 1 if the owner has re-entered. @since 0.1.0 */
  readonly holds: number
  /** The fencing token of the present grant. @since 0.1.0 */
  readonly fencingToken?: number
  /** ms until the holder's lease ends; if its `minHold` ends later, until then. @since 0.1.0 */
  readonly ttl?: number
  /**
   * For a semaphore: how many permits it has, according to the newest call of a holder or waiter; absent if there is no
   * holder and no waiter.
   * @since 0.2.0
   */
  readonly permits?: number
  /** For a semaphore: how many of its permits are taken. @since 0.2.0 */
  readonly taken?: number
  /**
   * For a semaphore: the groups of its holders and waiters, by name; absent if none of them has a group.
   * @since 0.2.0
   */
  readonly groups?: readonly GroupState[]
  /** All holders in the order of their grants; for a mutex, at most one. @since 0.2.0 */
  readonly holders: readonly HolderState[]
  /**
   * The waiters of the fair queue, in the order of grants. Unfair waiters are known only to their own clients.
   * @since 0.1.0
   */
  readonly waiters: readonly WaiterState[]
}

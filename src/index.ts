/**
 * redis-baton: blocking locks for Redis whose waiters never poll.
 *
 * Which part do you need?
 *   - `locks.using(key, fn)`: run a function under the lock. Start here.
 *   - `locks.lock(key)` with `await using` or `release()`: hold the lock in a block, or release it in another function.
 *   - `locks.wrap(key, fn)`, `@locked(locks, key)`: a function or method that always runs under a lock.
 *   - `locks.tryLock(key)`: take the lock only if it is free.
 *   - `locks.all([a, b])`: several locks, all of them or none.
 *   - `locks.semaphore(key, n)`: at most n permits taken at a time.
 *   - `locks.readWrite(key)`: any number of readers, or one writer.
 *   - `{ fair: true }`: first come, first served. Unfair locks are faster, and still no caller waits for ever.
 *   - `lease.fencingToken`: protects the data if a holder continues after its lease has ended.
 * @module redis-baton
 * @packageDocumentation
 */
export { LockClient } from './client.ts'
export type { MultiLock } from './compose/all.ts'
export type { MultiLease } from './compose/multi-lease.ts'
export {
  type HolderInfo,
  LockArgumentError,
  LockClosedError,
  LockConnectionError,
  LockDeadlockError,
  LockError,
  LockLostError,
  LockQueueFullError,
  LockTimeoutError,
} from './errors.ts'
export type { ClientEvents } from './events.ts'
export type { Lease } from './key/lease.ts'
export type { Via } from './kind.ts'
export type { Lock, ReadWriteLock } from './lock.ts'
export type { GroupState, HolderState, LockState, WaiterState } from './lock-state.ts'
export { locked } from './locked.ts'
export type { ClientStats, TimeStats } from './observe/stats.ts'
export type { ClientOptions, CloseOptions, LockOptions, Replicas, SemaphoreOptions } from './options.ts'
export type { IoredisInstance, RedisSource } from './redis/clients.ts'
export type { NodeRedisInstance } from './redis/node-redis.ts'

/**
 * Lock clients whose methods `lock(key)`, `tryLock(key)`, `using(key, …)`, `inspect(key)` and `isLocked(key)` use a
 * semaphore or a read-write lock instead of a mutex. Both the tests and their child processes use these clients, so
 * this file must not import the test runner.
 */

import { about } from '../../src/errors.ts'
import { type Lease, type Lock, LockClient, type LockOptions, type LockState } from '../../src/index.ts'
import type { KeyedLock } from '../../src/lock.ts'
import type { Wants } from '../history/wants.ts'

type Fn<T> = (lease: Lease) => T | PromiseLike<T>

abstract class KindClient extends LockClient {
  abstract override mutex(key: string): KeyedLock

  override lock(key: string, options?: LockOptions): Promise<Lease> {
    return this.mutex(key).lock(options)
  }

  override tryLock(key: string, options?: LockOptions): Promise<Lease | null> {
    return this.mutex(key).tryLock(options)
  }

  override using<T>(key: string, ...args: [Fn<T>] | [LockOptions, Fn<T>]): Promise<T> {
    return this.mutex(key).using(...args)
  }

  override inspect(key: string): Promise<LockState> {
    return this.mutex(key).inspect()
  }

  override async isLocked(key: string): Promise<boolean> {
    return about(key, this.mutex(key).client.inspection(key).isLocked(key))
  }
}

/** Uses semaphores of one permit as mutexes. */
class SemaphoreClient extends KindClient {
  override mutex(key: string): KeyedLock {
    return this.semaphore(key, 1) as KeyedLock
  }
}

/** Uses the write side of read-write locks as mutexes. */
class WriterClient extends KindClient {
  override mutex(key: string): KeyedLock {
    return this.readWrite(key).write as KeyedLock
  }
}

/**
 * The client class for each kind of lock. The Redis keys of a semaphore or a read-write lock contain the kind's name.
 */
export const kindClients = { mutex: LockClient, semaphore: SemaphoreClient, readWrite: WriterClient }
export type KindName = keyof typeof kindClients
export const kindNames = Object.keys(kindClients) as KindName[]

/** Returns a lock of this kind for the key. Like a mutex, it has at most one holder at a time. */
export function lockOf(locks: LockClient, kind: KindName, key: string): Lock {
  if (kind === 'semaphore') return locks.semaphore(key, 1)
  return kind === 'mutex' ? locks.mutex(key) : locks.readWrite(key).write
}

/** Returns what a call asks of a lock of this kind. A history records this value in the field `wants`. */
export function wantsOf(kind: KindName): Wants | undefined {
  if (kind === 'mutex') return undefined
  return kind === 'semaphore' ? [1, 1] : 'write'
}

/**
 * The locks of redis-baton in the memory of one process, without Redis: for tests, and for trying things out.
 * @module redis-baton/memory
 * @packageDocumentation
 */
import { LockArgumentError } from '../errors.ts'
import { MemoryHub } from './hub.ts'
import type { MemoryStore } from './store.ts'

export type { MemoryStore } from './store.ts'

/**
 * Makes a store for locks in the memory of this process. Pass it to `new LockClient` in the place of a Redis. The
 * clients of one store that have the same `prefix` share their locks.
 *
 * It has every kind of lock, option, event and error, except the option `replicas`. Its time is that of the globals
 * `performance` and `setTimeout`, so it works with the fake timers of test runners.
 * @throws LockArgumentError when it gets an argument
 * @since 0.2.0
 */
export function memory(...none: []): MemoryStore {
  if (none.length > 0) throw new LockArgumentError('memory()', 'called with an argument', 'no arguments: memory()')
  return new MemoryHub()
}

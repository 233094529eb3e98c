/** One key can name three different locks: a mutex, a read-write lock and a semaphore. */
import { Option } from 'commander'
import type { LockClient, LockState } from '../src/index.ts'
import type { Connected } from './connection.ts'

/** The kinds of locks, named as in the output of --json. */
const kinds = ['mutex', 'readWrite', 'semaphore'] as const

export type Kind = (typeof kinds)[number]

export function kindOption(description: string): Option {
  return new Option('--kind <kind>', description).choices(kinds)
}

/**
 * Returns the states of the locks under this key. With `kind`, returns only the lock of this kind. Without `kind`,
 * returns the locks of all kinds, the mutex first.
 */
export async function statesOf({ locks, quorum }: Connected, key: string, kind?: Kind): Promise<LockState[]> {
  const all: readonly Kind[] = quorum ? ['mutex'] : kinds
  return Promise.all((kind ? [kind] : all).map(each => lockOf(locks, key, each).inspect()))
}

/** Returns an object with which to inspect or force-release the lock. */
export function lockOf(locks: LockClient, key: string, kind: Kind) {
  switch (kind) {
    case 'mutex':
      return locks.mutex(key)
    case 'readWrite':
      // `read` would work as well, because `read` and `write` both inspect and release the whole lock.
      return locks.readWrite(key).write
    case 'semaphore':
      // The number of permits does not matter for inspection and release.
      return locks.semaphore(key, 1)
  }
}

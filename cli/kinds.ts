/** The locks of one key: a mutex, a read-write lock and a semaphore with the same key are three different locks. */
import { Option } from 'commander'
import type { LockClient, LockState } from '../src/index.ts'
import type { Connected } from './connection.ts'

/** The kinds, by their names in --json. */
const kinds = ['mutex', 'readWrite', 'semaphore'] as const

export type Kind = (typeof kinds)[number]

export function kindOption(description: string): Option {
  return new Option('--kind <kind>', description).choices(kinds)
}

/** The states of this key's locks: of all kinds, the mutex first, or of the one kind given. */
export async function statesOf({ locks, quorum }: Connected, key: string, kind?: Kind): Promise<LockState[]> {
  const all: readonly Kind[] = quorum ? ['mutex'] : kinds
  return Promise.all((kind ? [kind] : all).map(each => lockOf(locks, key, each).inspect()))
}

/** The lock object with which to inspect or force-release. */
export function lockOf(locks: LockClient, key: string, kind: Kind) {
  switch (kind) {
    case 'mutex':
      return locks.mutex(key)
    case 'readWrite':
      // Each of the two sides inspects and releases the whole lock.
      return locks.readWrite(key).write
    case 'semaphore':
      // The number of permits does not matter for inspection and release.
      return locks.semaphore(key, 1)
  }
}

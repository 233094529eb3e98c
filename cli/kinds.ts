/** The locks of one key: a mutex, a read-write lock and a semaphore of the same key are three different locks. */
import { Option } from 'commander'
import type { LockClient, LockState } from '../src/index.ts'
import type { Connected } from './connection.ts'

/** By the names that --json has for them. */
const kinds = ['mutex', 'readWrite', 'semaphore'] as const

export type Kind = (typeof kinds)[number]

export function kindOption(description: string): Option {
  return new Option('--kind <kind>', description).choices(kinds)
}

/** The locks of this key: all that there are, the mutex first, or that of one kind. */
export async function statesOf({ locks, quorum }: Connected, key: string, kind?: Kind): Promise<LockState[]> {
  const all: readonly Kind[] = quorum ? ['mutex'] : kinds
  return Promise.all((kind ? [kind] : all).map(each => lockOf(locks, key, each).inspect()))
}

/** To be looked at, or taken away. */
export function lockOf(locks: LockClient, key: string, kind: Kind) {
  switch (kind) {
    case 'mutex':
      return locks.mutex(key)
    case 'readWrite':
      // Either side sees and takes all of it.
      return locks.readWrite(key).write
    case 'semaphore':
      // How many permits it has is of no account there.
      return locks.semaphore(key, 1)
  }
}

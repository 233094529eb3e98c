/** The names of a lock's keys in Redis, by the words for them in lua/. */
import type { Names } from '../../src/kind.ts'

export const suffixOf = {
  lock: '',
  queue: ':q',
  deadlines: ':d',
  readers: ':r',
  waiting: ':w',
  turns: ':t',
  shares: ':s',
  none: ':n',
} as const

export type NamesOf<W extends keyof typeof suffixOf> = { readonly [K in W]: string }

/** Returns the names of a lock's keys for these words. */
export function namesOf<W extends keyof typeof suffixOf>(lock: string, ...words: readonly W[]): NamesOf<W> {
  return Object.fromEntries(words.map(word => [word, lock + suffixOf[word]])) as NamesOf<W>
}

/** Returns the keys for the script `renew`: the lock of each hold, and then the deadlines of each. */
export function renewed(...locks: readonly string[]): Names {
  return { lock: locks[0]!, all: [...locks, ...locks.map(lock => `${lock}:d`)], least: locks.length }
}

/**
 * Helpers for tests of a lock that several servers keep. Each test sends what the client would send, but to only one of
 * the servers.
 */
import { expect } from 'vitest'
import type { VoteMode } from '../../src/kind.ts'
import type { Caller } from './callers.ts'
import type { TestLock } from './test-lock.ts'

/** One hour, in µs. */
export const HOUR = 3_600_000_000

/** Returns a floor that is `by` µs ahead of the server's time, so the server's time stays below it during the test. */
export async function ahead(lock: TestLock, by = HOUR): Promise<number> {
  return (await lock.micros()) + by
}

/**
 * Reads the token of the hold, and the last token or ticket issued (`clock`). `token` is undefined if nobody holds the
 * lock.
 */
export async function agreed(lock: TestLock): Promise<{ token: number | undefined; clock: number }> {
  const { token, clock } = await lock.hash()
  return { token: token === undefined ? undefined : Number(token), clock: Number(clock) }
}

/** Makes an attempt with this mode and floor, and checks that it changes nothing in Redis. */
export async function unchanged(lock: TestLock, who: Caller, mode: VoteMode, floor: number) {
  const before = await lock.snapshot()
  const reply = await lock.acquire(who, { mode, floor })
  expect(await lock.snapshot()).toEqual(before)
  return reply
}

/** Helpers for tests of votes: asking one server of several, and reading its token and clock. */
import { expect } from 'vitest'
import type { VoteMode } from '../../src/kind.ts'
import type { Caller } from './callers.ts'
import type { TestLock } from './test-lock.ts'

/** One hour, in µs. */
export const HOUR = 3_600_000_000

/** Returns a floor so far ahead of the server's time that no test reaches it. */
export async function ahead(lock: TestLock, by = HOUR): Promise<number> {
  return (await lock.micros()) + by
}

/** Reads the lock's token and clock, as numbers. The token is undefined if nobody holds the lock. */
export async function agreed(lock: TestLock): Promise<{ token: number | undefined; clock: number }> {
  const { token, clock } = await lock.hash()
  return { token: token === undefined ? undefined : Number(token), clock: Number(clock) }
}

/** Asks for a vote, and checks that the vote changes nothing in Redis. */
export async function unchanged(lock: TestLock, who: Caller, mode: VoteMode, floor: number) {
  const before = await lock.snapshot()
  const reply = await lock.acquire(who, { mode, floor })
  expect(await lock.snapshot()).toEqual(before)
  return reply
}

/** What tests of votes share: how one server of several is asked, and what it has then. */
import { expect } from 'vitest'
import type { VoteMode } from '../../src/kind.ts'
import type { Caller } from './callers.ts'
import type { TestLock } from './test-lock.ts'

/** µs */
export const HOUR = 3_600_000_000

/** So far ahead of the server's time that no time of a test reaches it. */
export async function ahead(lock: TestLock, by = HOUR): Promise<number> {
  return (await lock.micros()) + by
}

/** The lock's token and clock, as numbers; no token: nobody holds it. */
export async function agreed(lock: TestLock): Promise<{ token: number | undefined; clock: number }> {
  const { token, clock } = await lock.hash()
  return { token: token === undefined ? undefined : Number(token), clock: Number(clock) }
}

/** Asks for a vote that must change no byte. */
export async function unchanged(lock: TestLock, who: Caller, mode: VoteMode, floor: number) {
  const before = await lock.snapshot()
  const reply = await lock.acquire(who, { mode, floor })
  expect(await lock.snapshot()).toEqual(before)
  return reply
}

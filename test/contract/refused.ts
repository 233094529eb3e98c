/** How the contract tests recognise a refusal by the server, and that there is none. */
import { expect } from 'vitest'
import { type LockClient, LockConnectionError } from '../../src/index.ts'
import { promptly, rejection } from '../kit/outcomes.ts'
import { place } from '../kit/place.ts'

/** The call is refused by the server, in its own words. */
export async function refused(call: PromiseLike<unknown>, words: RegExp, key?: string): Promise<void> {
  const error = await rejection(call, LockConnectionError)
  const cause = error.cause as Error
  expect([cause.name, cause.message]).toEqual(['ReplyError', expect.stringMatching(words)])
  expect(error.message).toContain(cause.message)
  if (key) expect(error.key).toBe(key)
}

export async function refusesAll(locks: LockClient, key: string, words: RegExp): Promise<void> {
  const calls = [locks.lock(key), locks.lock(key, { fair: true }), locks.tryLock(key), locks.using(key, () => 'ran')]
  await promptly(Promise.all(calls.map(call => refused(call, words, key))))
}

export async function refusesLooks(locks: LockClient, key: string, words: RegExp): Promise<void> {
  const calls = [locks.inspect(key), locks.isLocked(key), locks.forceRelease(key)]
  await promptly(Promise.all(calls.map((call: Promise<unknown>) => refused(call, words, key))))
}

/** The error says that there was nobody to connect to. Of sentinels ioredis keeps the words of their sockets to itself. */
export function expectNobodyThere({ message, cause }: LockConnectionError): void {
  expect(cause).toBeInstanceOf(Error)
  const reason = cause as NodeJS.ErrnoException
  if (place().bySentinels) expect(reason.message).toMatch(/^All sentinels are unreachable/)
  else expect(reason.code).toBe('ECONNREFUSED')
  expect(message).toContain(reason.message)
}

/** Checks calls that the server refused, or that could not reach the server. */
import { expect } from 'vitest'
import { type LockClient, LockConnectionError } from '../../src/index.ts'
import { promptly, rejection } from '../kit/outcomes.ts'
import { place } from '../kit/place.ts'

/** Expects the call to reject. The reason must be an error reply of the server that matches `words`. */
export async function refused(call: PromiseLike<unknown>, words: RegExp, key?: string): Promise<void> {
  const error = await rejection(call, LockConnectionError)
  const reasons = reasonsOf(error)
  // Over a quorum, a majority that refuses decides: the call does not wait until the others have said why, too.
  const told = place().parts === 1 ? reasons : reasons.filter(({ name }) => name === 'ReplyError')
  expect(told.length).toBeGreaterThan(reasons.length / 2)
  for (const reason of told) {
    expect([reason.name, reason.message]).toEqual(['ReplyError', expect.stringMatching(words)])
    if (place().parts === 1) expect(error.message).toContain(reason.message)
  }
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

/**
 * Expects the error to say that no server accepted the connection. With sentinels, the error says only that no sentinel
 * was reached, because ioredis does not report why.
 */
export function expectNobodyThere(error: LockConnectionError): void {
  const { parts, bySentinels } = place()
  if (parts > 1) expect(error.message).toContain(`0 of ${parts} answered`)
  for (const reason of reasonsOf(error)) {
    if (bySentinels) expect(reason.message).toMatch(/^All sentinels are unreachable/)
    else expect(reason.code).toBe('ECONNREFUSED')
    if (parts === 1) expect(error.message).toContain(reason.message)
  }
}

/**
 * Returns the reason of each server that refused or failed. In a quorum, expects that a majority of the servers refused
 * or failed.
 */
export function reasonsOf({ cause }: LockConnectionError): NodeJS.ErrnoException[] {
  const { parts } = place()
  if (parts === 1) {
    expect(cause).toBeInstanceOf(Error)
    return [cause as NodeJS.ErrnoException]
  }
  const reasons = reasonsOfServers(cause)
  expect(reasons.length).toBeGreaterThan(parts / 2)
  return reasons
}

/** Returns the errors that the servers or their connections reported when a quorum had no majority. */
export function reasonsOfServers(cause: unknown): NodeJS.ErrnoException[] {
  expect(cause).toBeInstanceOf(AggregateError)
  return (cause as AggregateError).errors.map((each: LockConnectionError) => {
    expect(each).toBeInstanceOf(LockConnectionError)
    expect(each.message).toMatch(/^server \d of \d: ./)
    return each.cause as NodeJS.ErrnoException
  })
}

/** Helpers to observe how and how soon a promise settles, and which events a client emits. */
import { once } from 'node:events'
import { expect } from 'vitest'
import { type ClientEvents, type LockClient, LockConnectionError } from '../../src/index.ts'
import { sleep, stopwatch, whenOver } from './time.ts'

/**
 * A call that takes at most this long, in ms, counts as prompt in tests. The limit leaves room for a slow and busy
 * machine. It is much shorter than the defaults of `lease`, `waiterTtl` and `outageTimeout`, so a call that waits for
 * one of them does not count as prompt.
 */
export const PROMPT = 3_000

type Class<T> = abstract new (...args: never[]) => T

/**
 * How a promise settled. The promise that `outcomeOf` returns never rejects. So a test can await it later, without an
 * unhandled rejection in the meantime.
 */
export type Outcome<T> = { value: T; error?: undefined } | { value?: undefined; error: Error }

export function outcomeOf<T>(promise: PromiseLike<T>): Promise<Outcome<T>> {
  return Promise.resolve(
    promise.then(
      value => ({ value }),
      (error: Error) => ({ error }),
    ),
  )
}

/** Returns the error that the promise rejects with. Fails if the error is not of the class `expected`. */
export async function rejection<T extends Error>(promise: PromiseLike<unknown>, expected: Class<T>): Promise<T> {
  const error = await reasonOf(promise)
  expect(error).toBeInstanceOf(expected)
  return error as T
}

/** Returns what the promise rejects with, whether an error or another value. */
export async function reasonOf(promise: PromiseLike<unknown>): Promise<unknown> {
  const outcome = await outcomeOf(promise)
  if ('error' in outcome) return outcome.error
  throw new Error(`resolved to ${String(outcome.value)} instead of rejecting`)
}

/**
 * Returns the message of the cause of a LockConnectionError, which is usually what the server replied. Returns any
 * other error as text.
 */
export function wordsOf(error: Error | undefined): string {
  if (!(error instanceof LockConnectionError)) return `${error}`
  return error.cause instanceof Error ? error.cause.message : `${error.cause}`
}

/** Returns what the promise resolves to. Fails if that takes longer than `limit` ms of a stopwatch from now. */
export async function within<T>(limit: number, promise: PromiseLike<T>, when = 'from now'): Promise<T> {
  const elapsed = stopwatch()
  let inTime: (() => void) | undefined
  const late = new Promise<never>((_, reject) => {
    inTime = whenOver(elapsed, limit + 100, () => reject(new Error(`not within ${limit} ms ${when}`)))
  })
  try {
    const value = await Promise.race([promise, late])
    expect(elapsed(), when).toBeLessThan(limit)
    return value
  } finally {
    inTime?.()
  }
}

/** Settles as the promise does. Fails if that takes longer than `PROMPT`. */
export async function promptly<T>(promise: PromiseLike<T>): Promise<T> {
  const outcome = await within(PROMPT, outcomeOf(promise))
  if ('error' in outcome) throw outcome.error
  return outcome.value
}

/** Returns whether the promise settles within `ms`. */
export function settles(promise: PromiseLike<unknown>, ms: number): Promise<boolean> {
  return Promise.race([outcomeOf(promise).then(() => true), sleep(ms).then(() => false)])
}

/** Resolves when the signal aborts, or at once if it already has. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** Collects the events with this name that the client emits from now on. */
export function heard<E extends keyof ClientEvents>(locks: LockClient, name: E): ClientEvents[E][] {
  const events: ClientEvents[E][] = []
  const listen = (event: ClientEvents[E]) => events.push(event)
  locks.on(name, listen as never)
  return events
}

export async function collect<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of iterable) items.push(item)
  return items
}

/** Calls every method of the client that takes a key, with and without waiting, and returns the promises. */
export function everyCall(locks: LockClient, key: string): Promise<unknown>[] {
  return [
    ...Array.from({ length: 5 }, () => locks.lock(key)),
    locks.lock(key, { fair: true }),
    locks.lock(key, { timeout: 10_000 }),
    locks.tryLock(key),
    locks.tryLock(key, { timeout: 10_000 }),
    locks.using(key, () => 'ran'),
    locks.inspect(key),
    locks.isLocked(key),
    locks.forceRelease(key),
  ]
}

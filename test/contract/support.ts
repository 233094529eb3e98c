/** What the contract tests share: how to look at an error, an event, a promise that must still be pending, a queue. */
import { once } from 'node:events'
import { expect } from 'vitest'
import type { ClientEvents, Lease, LockClient, LockConnectionError, LockOptions, LockState } from '../../src/index.ts'
import { place } from '../kit/place.ts'
import { client } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

/** "At once", with room for a slow and busy machine; well below every default that could be mistaken for it, in ms. */
export const PROMPT = 3_000

type Class<T> = abstract new (...args: never[]) => T

/** What the promise rejects with, which must be of this class. */
export async function rejection<T extends Error>(promise: PromiseLike<unknown>, expected: Class<T>): Promise<T> {
  const error = await reasonOf(promise)
  expect(error).toBeInstanceOf(expected)
  return error as T
}

/** Whatever the promise rejects with, an error or not. */
export async function reasonOf(promise: PromiseLike<unknown>): Promise<unknown> {
  const outcome = await promise.then(
    value => ({ value }),
    (reason: unknown) => ({ reason }),
  )
  if ('reason' in outcome) return outcome.reason
  throw new Error(`resolved to ${String(outcome.value)} instead of rejecting`)
}

/** Resolves when the signal has aborted, also where it did before. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** The promise's outcome and how long it took; fails if that is not `PROMPT`. */
export async function promptly<T>(promise: PromiseLike<T>): Promise<T> {
  const begin = performance.now()
  try {
    return await promise
  } finally {
    expect(performance.now() - begin).toBeLessThan(PROMPT)
  }
}

/** Whether the promise settles within `ms`. */
export async function settles(promise: PromiseLike<unknown>, ms: number): Promise<boolean> {
  const settled = promise.then(
    () => true,
    () => true,
  )
  return Promise.race([settled, sleep(ms).then(() => false)])
}

/** The events of one name that the client tells from now on. */
export function heard<E extends keyof ClientEvents>(locks: LockClient, name: E): ClientEvents[E][] {
  const events: ClientEvents[E][] = []
  const listen = (event: ClientEvents[E]) => events.push(event)
  locks.on(name, listen as never)
  return events
}

/** The lock's state as soon as its fair queue has this many waiters. */
export function queueOf(locks: LockClient, key: string, waiters: number): Promise<LockState> {
  return eventually(async () => {
    const state = await locks.inspect(key)
    return state.waiters.length === waiters ? state : undefined
  }) as Promise<LockState>
}

/** A call of `lock` that is queued behind all that were queued before. `waiters`: how many it makes. */
export async function queueUp(
  locks: LockClient,
  key: string,
  waiters: number,
  options: LockOptions = {},
): Promise<{ lease: Promise<Lease> }> {
  const lease = locks.lock(key, { fair: true, ...options })
  await Promise.race([queueOf(locks, key, waiters), failure(lease)])
  return { lease }
}

/** An unfair call of `lock` that was refused and is parked, and never joins the queue. The client must be one that does not wait for the key yet. */
export async function park(
  locks: LockClient,
  key: string,
  options: LockOptions = {},
): Promise<{ lease: Promise<Lease> }> {
  const waits = heard(locks, 'waiting')
  const lease = locks.lock(key, { fair: false, fairAfter: Number.POSITIVE_INFINITY, ...options })
  await Promise.race([eventually(() => waits.some(event => event.key === key)), failure(lease)])
  return { lease }
}

/** Takes the lock by a client that is cut off then: the hold ends with its lease, and nobody gives it back before. */
export async function takeAndVanish(key: string, options: LockOptions): Promise<Lease> {
  const { source, proxy } = await place().proxied()
  const lease = await client({ outageTimeout: 1_000 }, source).lock(key, options)
  proxy.refuse()
  proxy.cut()
  return lease
}

/** Rejects if the call does; settles in no other way. */
function failure(call: Promise<unknown>): Promise<never> {
  return new Promise((_, reject) => call.catch(reject))
}

/** Runs `count` callers through the lock one way or another; what they saw. */
export class Room {
  inside = 0
  most = 0
  readonly tokens: number[] = []

  async visit(lease: Lease, ms = 2): Promise<void> {
    this.most = Math.max(this.most, ++this.inside)
    this.tokens.push(lease.fencingToken)
    await sleep(ms)
    this.inside -= 1
  }
}

export function expectIncreasing(numbers: readonly number[]): void {
  for (const [i, number] of numbers.entries()) {
    if (i > 0) expect(number).toBeGreaterThan(numbers[i - 1] as number)
  }
}

/** Clients of their own: nothing is shared between them but Redis. */
export function clients<N extends number>(count: N): LockClient[] {
  return Array.from({ length: count }, () => client())
}

/** The error says that there was nobody to connect to. Of sentinels ioredis keeps the words of their sockets to itself. */
export function expectNobodyThere({ message, cause }: LockConnectionError): void {
  expect(cause).toBeInstanceOf(Error)
  const reason = cause as NodeJS.ErrnoException
  if (place().bySentinels) expect(reason.message).toMatch(/^All sentinels are unreachable/)
  else expect(reason.code).toBe('ECONNREFUSED')
  expect(message).toContain(reason.message)
}

export async function collect<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of iterable) items.push(item)
  return items
}

/** What several rows of the matrix do. */
import { type Lease, type LockClient, LockConnectionError, type LockOptions } from '../../../src/index.ts'
import { client, freshKey, redisUrl } from '../../kit/redis.ts'
import { parkOne } from '../../kit/steps.ts'
import { eventually } from '../../kit/time.ts'
import { FrameProxy } from './frame-proxy.ts'

export { nothingLeft, parkOne, within } from '../../kit/steps.ts'

export const ways = [true, false]

/** Resolved or rejected, and with what: a promise whose outcome is looked at later, without being unhandled meanwhile. */
export type Outcome<T> = { value: T; error?: undefined } | { value?: undefined; error: Error }

export function outcomeOf<T>(promise: PromiseLike<T>): Promise<Outcome<T>> {
  return Promise.resolve(
    promise.then(
      value => ({ value }),
      (error: Error) => ({ error }),
    ),
  )
}

/** Makes the server know every script, so that the first reply is never only "I do not know this script". */
export async function warm(locks: LockClient): Promise<void> {
  const key = freshKey('warm')
  const lease = await locks.lock(key)
  // Too short for an answer, as often as not.
  await locks.tryLock(key, { fair: true, timeout: 1 }).catch(() => {})
  await lease.renew()
  await lease.release()
}

/** A client behind a proxy of its own. */
export async function clientBehindProxy(
  options: ConstructorParameters<typeof LockClient>[1] = {},
  url?: string,
): Promise<{ locks: LockClient; proxy: FrameProxy }> {
  const proxy = await FrameProxy.before(url ?? redisUrl())
  const locks = client(options, proxy.url)
  await warm(locks)
  await eventually(() => proxy.connections('messages') === 1)
  return { locks, proxy }
}

/** A waiter that has nothing more to ask: parked, subscribed, and tried again. */
export async function parkQuietly(locks: LockClient, key: string, options: LockOptions = {}) {
  const parked = await parkOne(locks, key, options)
  if (!options.fair) await new Promise(resolve => setTimeout(resolve, 30))
  return parked
}

/** The server's own words, where that is why the call was rejected. */
export function reasonOf(error: Error | undefined): string {
  if (!(error instanceof LockConnectionError)) return `${error}`
  return error.cause instanceof Error ? error.cause.message : `${error.cause}`
}

/** A call that gives up on the way, if it has not been granted by then. */
export async function hasty(locks: LockClient, key: string, fair: boolean): Promise<Lease | undefined> {
  const lease = await locks.tryLock(key, { fair, timeout: 1 }).catch(() => undefined)
  return lease ?? undefined
}

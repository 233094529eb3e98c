/** Proxies for the duration of a test, and clients behind them. */
import { onTestFinished } from 'vitest'
import type { ClientOptions, Lease, LockClient } from '../../src/index.ts'
import { FaultProxy } from './fault-proxy.ts'
import { FrameProxy } from './frame-proxy.ts'
import { client, freshKey, redisUrl } from './redis.ts'
import { RefusingProxy } from './refusing-proxy.ts'
import type { Relay } from './relay.ts'
import { eventually } from './time.ts'

export type { Direction, Where } from './frame-proxy.ts'
export type { FaultProxy, FrameProxy, RefusingProxy }

/** Opens a proxy that can delay, hold back or discard the bytes of its connections. */
export const faultProxy = (url: string) => closed(FaultProxy.open(url))
/** Opens a proxy that can drop, delay or repeat a single command, reply or message. */
export const frameProxy = (url: string) => closed(FrameProxy.open(url))
/** Opens a proxy that answers requests in place of the server. */
export const refusingProxy = (url: string) => closed(RefusingProxy.open(url))

async function closed<P extends Relay>(opening: Promise<P>): Promise<P> {
  const proxy = await opening
  onTestFinished(() => proxy.close())
  return proxy
}

export async function clientBehindProxy(
  options: ClientOptions = {},
  url = redisUrl(),
  Client?: Parameters<typeof client>[2],
): Promise<{ locks: LockClient; proxy: FrameProxy }> {
  const proxy = await frameProxy(url)
  const locks = client(options, proxy.url, Client)
  await warm(locks)
  await eventually(() => proxy.connections('messages') === 1)
  return { locks, proxy }
}

/** Calls the scripts once, so that the server knows them. Then no reply in the test is NOSCRIPT. */
export async function warm(locks: LockClient): Promise<void> {
  const key = freshKey('warm')
  const lease = await locks.lock(key)
  // This call often gives up before the reply. Then the client runs the script that withdraws a request, so the server
  // knows that script as well.
  await hasty(locks, key, true)
  await lease.renew()
  await lease.release()
}

/** Makes a call that gives up almost at once if it is not granted. */
export async function hasty(locks: LockClient, key: string, fair: boolean): Promise<Lease | null> {
  return locks.tryLock(key, { fair, timeout: 1 }).catch(() => null)
}

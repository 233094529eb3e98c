/**
 * A user's file. Several compilers check it against the packed package, with the strictest settings. They also check
 * the package's declarations. The file is never run.
 */
import { Redis } from 'ioredis'
import {
  type ClientOptions,
  type Lease,
  LockClient,
  LockLostError,
  type LockOptions,
  LockTimeoutError,
  locked,
} from 'redis-baton'
import { instrument } from 'redis-baton/opentelemetry'

const settings: ClientOptions = { prefix: 'app', lease: 5_000, fair: true, timeout: undefined }
export const locks = new LockClient(new Redis({ lazyConnect: true }), settings)
instrument(locks, { attributes: { 'server.address': 'redis' }, keyGroup: key => key.slice(0, 5) })
locks.on('acquired', ({ key, fencingToken }) => console.log(key, fencingToken.toFixed()))

async function charge(lease: Lease, patience: LockOptions): Promise<number | null> {
  const other = await locks.tryLock(`${lease.key}:other`, patience)
  await other?.release()
  return lease.held ? lease.fencingToken : null
}

export class Account {
  @locked(locks, (id: string) => `account:${id}`)
  async close(id: string): Promise<string> {
    return id
  }
}

export async function main(): Promise<void> {
  try {
    const token: number | null = await locks.using('order', { timeout: 100 }, lease => charge(lease, { fairAfter: 5 }))
    console.log(token)
    for await (const { key, waiters } of locks.list()) console.log(key, waiters.length)
  } catch (error) {
    if (error instanceof LockTimeoutError) console.log(error.holder?.label, error.code)
    else if (!(error instanceof LockLostError)) throw error
  }
}

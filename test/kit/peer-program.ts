/**
 * A client in its own process. The test controls it by messages (peer.ts). Arguments: the servers' URLs (several for a
 * quorum), the client options as JSON, and the kind of lock.
 */

import { closeSync, openSync } from 'node:fs'
import type { ClientOptions, Lease, LockOptions } from '../../src/index.ts'
import type { SemaphoreOptions } from '../../src/options.ts'
import type { KindName } from './kind-clients.ts'
import { parkMany } from './parking.ts'
import { eventually, sleep } from './time.ts'
import { jump } from './time-of-day.ts'

const [urls = '', options = '{}', kind = 'mutex'] = process.argv.slice(2)

const [first = '', one, ...others] = urls.split(' ')

const tell = (message: object) => process.send?.(message)
for (const event of ['unhandledRejection', 'uncaughtException']) {
  process.on(event, reason => tell({ crash: `${event}: ${reason instanceof Error ? reason.stack : String(reason)}` }))
}

const { kindClients } = await import('./kind-clients.ts')
const { Memory, RecordedClient } = await import('../history/recorded.ts')
const locks = new kindClients[kind as KindName](
  one === undefined ? first : [first, one, ...others],
  JSON.parse(options) as ClientOptions,
)
const memory = new Memory()
const recorded = new RecordedClient('peer', locks, memory)
const leases = new Map<string, Lease>()
let lost = 0
locks.on('lost', () => {
  lost += 1
})

export interface Hold {
  id: string
  token: number
  via: string
}

async function lock(key: string, lockOptions: LockOptions = {}): Promise<Hold> {
  const lease = await recorded.lock(key, lockOptions)
  leases.set(lease.id, lease)
  return { id: lease.id, token: lease.fencingToken, via: lease.via }
}

function leaseOf(id: string): Lease {
  return leases.get(id) as Lease
}

const deeds = {
  lock,
  async permits(key: string, of: number, options: SemaphoreOptions): Promise<void> {
    await locks.semaphore(key, of).lock(options)
  },
  async read(key: string, lockOptions: LockOptions): Promise<void> {
    await locks.readWrite(key).read.lock(lockOptions)
  },
  /** Parks this many fair waiters that want to read. */
  async queueToRead(key: string, count: number): Promise<void> {
    const { read } = locks.readWrite(key)
    for (let i = 0; i < count; i++) void read.lock({ fair: true })
    await eventually(async () => (await read.inspect()).waiters.length >= count)
  },
  /** Parks this many waiters. If a waiter is granted the lock, it never releases the lock. */
  async queue(key: string, count: number, lockOptions: LockOptions): Promise<void> {
    await parkMany(locks, key, count, lockOptions)
  },
  release: (id: string) => recorded.release(leaseOf(id)),
  renew: (id: string, ms: number) => leaseOf(id).renew(ms),
  state: (id: string) => ({ held: leaseOf(id).held, aborted: leaseOf(id).signal.aborted, lost }),
  /** Blocks the event loop, and then reports the lease's state before any other code runs. */
  block(id: string, ms: number) {
    for (const end = performance.now() + ms; performance.now() < end; );
    return { held: leaseOf(id).held, remaining: leaseOf(id).remaining() }
  },
  /** Returns when the lease ends by this client's reckoning: between which two times of the monotonic clock. */
  ends(id: string) {
    const from = performance.now()
    const left = leaseOf(id).remaining()
    return { from: from + left, to: performance.now() + left }
  },
  /** Leaves this process without a free file descriptor for this many ms. */
  async starve(ms: number): Promise<void> {
    const files: number[] = []
    try {
      for (;;) files.push(openSync('/dev/null', 'r'))
    } catch {
      await sleep(ms)
    }
    for (const file of files) closeSync(file)
  },
  /** Moves the time of day by this many ms. */
  jump,
  history: () => memory.events,
  close: () => locks.close(),
}

export type Deeds = typeof deeds
export interface Demand {
  number: number
  deed: keyof Deeds
  args: unknown[]
}
export type Response = { number: number; result: unknown } | { number: number; error: string } | { crash: string }

process.on('disconnect', () => process.exit())
process.on('message', async ({ number, deed, args }: Demand) => {
  try {
    tell({ number, result: await (deeds[deed] as (...args: unknown[]) => unknown)(...args) })
  } catch (error) {
    tell({ number, error: String(error) })
  }
})
tell({ number: 0, result: 'ready' })

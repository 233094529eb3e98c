/**
 * A process with one lock client that does what the test tells it (agent.ts). Arguments: the URL of Redis, the client's
 * options as JSON, and by how many ms this process's time of day is off.
 */
import type { ClientOptions, Lease, LockOptions } from '../../../src/index.ts'

const [url = '', options = '{}', clockOffset = '0'] = process.argv.slice(2)
let offset = Number(clockOffset)
// Before the library is loaded, so that nothing in it can have seen another time.
const TrueDate = Date
globalThis.Date = class extends TrueDate {
  constructor(...args: [number?]) {
    super(...((args.length > 0 ? args : [TrueDate.now() + offset]) as [number]))
  }
  static override now = () => TrueDate.now() + offset
} as DateConstructor

const { LockClient } = await import('../../../src/index.ts')
const locks = new LockClient(url, JSON.parse(options) as ClientOptions)
const leases = new Map<string, Lease>()
let refused = 0
locks.on('waiting', () => {
  refused += 1
})

export interface Hold {
  id: string
  token: number
  via: string
  waited: number
  remaining: number
}

async function lock(key: string, lockOptions: LockOptions = {}): Promise<Hold> {
  const lease = await locks.lock(key, lockOptions)
  // Asked for now, so that it is the signal that its user has had from the start.
  void lease.signal
  leases.set(lease.id, lease)
  const { id, fencingToken: token, via, waited } = lease
  return { id, token, via, waited, remaining: lease.remaining() }
}

function leaseOf(id: string): Lease {
  return leases.get(id) as Lease
}

const deeds = {
  lock,
  /** Parks so many waiters; answers when all of them have been refused. */
  async queue(key: string, count: number, lockOptions: LockOptions): Promise<void> {
    const before = refused
    for (let i = 0; i < count; i++) lock(key, lockOptions).catch(() => {})
    while (refused < before + count) await new Promise(resolve => setTimeout(resolve, 1))
  },
  release: (id: string) => leaseOf(id).release(),
  state: (id: string) => ({ held: leaseOf(id).held, aborted: leaseOf(id).signal.aborted }),
  /** Blocks the event loop; tells what the lease says before anything else could run. */
  block(id: string, ms: number) {
    for (const end = performance.now() + ms; performance.now() < end; );
    return { held: leaseOf(id).held, remaining: leaseOf(id).remaining() }
  },
  timeOfDay: () => Date.now(),
  setClock(ms: number) {
    offset = ms
  },
}

export type Deeds = typeof deeds
export interface Demand {
  number: number
  deed: keyof Deeds
  args: unknown[]
}
export type Response = { number: number; result: unknown } | { number: number; error: string }

process.on('disconnect', () => process.exit())
process.on('message', async ({ number, deed, args }: Demand) => {
  const answer = (response: Response) => process.send?.(response)
  try {
    answer({ number, result: await (deeds[deed] as (...args: unknown[]) => unknown)(...args) })
  } catch (error) {
    answer({ number, error: String(error) })
  }
})

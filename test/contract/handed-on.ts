/** How the contract tests come by a lease that was handed on within its client. */
import type { Lease, LockClient, LockOptions } from '../../src/index.ts'
import { client } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'
import { heard } from './support.ts'

export interface HandedOn {
  /** Its predecessor was a lease of the same client. */
  readonly lease: Lease
  readonly predecessor: Lease
  /** Callers of the same client that stand behind it. */
  readonly behind: Promise<Lease>[]
}

/**
 * Parks callers of the client behind a lease of somebody else, and has the first of them release as soon as it is granted:
 * then the second has the lock from it. On a machine that stops for some ms just then it has it from Redis; so again.
 */
export async function handedOn(
  locks: LockClient,
  key: string,
  options: LockOptions = {},
  behind = 0,
): Promise<HandedOn> {
  const stranger = client()
  for (;;) {
    const holder = await stranger.lock(key)
    const waits = heard(locks, 'waiting')
    const calls = Array.from({ length: 2 + behind }, () => locks.lock(key, options))
    await eventually(() => waits.filter(event => event.key === key).length === calls.length)
    await holder.release()
    const predecessor = await calls[0]!
    void predecessor.release()
    const lease = await calls[1]!
    if (lease.via === 'handoff') return { lease, predecessor, behind: calls.slice(2) }
    await lease.release()
    for (const call of calls.slice(2)) await (await call).release()
  }
}

/**
 * Finds the locks that certainly keep their state during a fault of some servers: they stay free, or held by the same
 * caller. The servers without the fault agree on the state of such a lock, and are a majority of all servers. All other
 * locks may be taken away from their holders if the fault empties a server, or sets its clock past the ends of leases.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeHolder } from '../../../../src/kinds/claim.ts'
import { lockName } from '../terms.ts'
import type { QuorumServer } from './server.ts'
import { majorityOf } from './terms.ts'

/** What a server says about a lock: the holder's id, or 'free'. Undefined if the server has not answered. */
type Said = string | 'free' | undefined
/** What several servers say about all locks: one list for each server, with one entry for each lock. */
export type Sight = readonly (readonly Said[])[]

/** A server that does not answer within this many ms counts as away. */
const PATIENCE = 300

/**
 * Returns the numbers of the locks in doubt. A lock is in doubt if a fault of some servers may take it away from its
 * holder. `before` and `after` are what the other servers said before and after the fault. `lost` is what the affected
 * servers said before the fault. A lock is in doubt in two cases:
 * - No majority of all servers said the same before and after the fault, for example because the lock changed hands.
 * - An affected server had voted for a claim, and the majority did not name this claim. The claim may still win later,
 *   if other servers vote for it, too.
 */
export function inDoubt(before: Sight, after: Sight, servers: number, lost: Sight = []): number[] {
  const locks = Math.max(0, ...[...before, ...after].map(list => list.length))
  return Array.from({ length: locks }, (_, lock) => lock).filter(lock => {
    const counts = new Map<Said, number>()
    for (const [i, list] of before.entries()) {
      const said = list[lock]
      if (said !== undefined && said === after[i]?.[lock]) counts.set(said, (counts.get(said) ?? 0) + 1)
    }
    const agreed = [...counts.keys()].find(said => (counts.get(said) ?? 0) >= majorityOf(servers))
    const others = lost.flatMap(list => list[lock] ?? [])
    return agreed === undefined || others.some(said => said !== agreed && said !== 'free')
  })
}

/** The keys of the locks that a fault may have taken away. */
export interface Lost {
  readonly inDoubt: string[]
  /**
   * Other locks for which an affected server had voted. If the connection of a holder to another server is broken, the
   * holder does not know the vote of that other server, and may need the vote of the affected server. Such a holder may
   * be notified of a loss early. No other caller gets the lock before that.
   */
  readonly voted: string[]
}

/**
 * Calls `happen`, which causes the fault of the servers with the numbers `lost`. Returns the locks that the fault may
 * have taken away.
 */
export async function lostBy(
  all: readonly QuorumServer[],
  lost: readonly number[],
  keys: readonly string[],
  happen: () => Promise<void>,
  size = all.length,
  patience = PATIENCE,
): Promise<Lost> {
  const others = all.filter(({ number }) => !lost.includes(number))
  const meant = all.filter(({ number }) => lost.includes(number))
  const [before, votes] = await Promise.all([sight(others, keys, patience), sight(meant, keys, patience)])
  await happen()
  const after = await sight(others, keys, patience)
  const doubts = new Set(inDoubt(before, after, size, votes))
  const voted = (_: string, lock: number) =>
    !doubts.has(lock) && votes.some(list => list[lock] !== undefined && list[lock] !== 'free')
  return { inDoubt: keys.filter((_, lock) => doubts.has(lock)), voted: keys.filter(voted) }
}

function sight(servers: readonly QuorumServer[], keys: readonly string[], patience: number): Promise<Sight> {
  return Promise.all(servers.map(server => Promise.race([saidBy(server, keys), sleep(patience, [])])))
}

/** Reads what the server says about each lock. A lock is free once its lease has lapsed by this server's clock. */
async function saidBy({ admin }: QuorumServer, keys: readonly string[]): Promise<Said[]> {
  const pipeline = admin.pipeline().time()
  for (const key of keys) pipeline.hget(lockName(key), 'holder')
  const [time, ...replies] = (await pipeline.exec()) ?? []
  const [seconds, micros] = (time?.[1] ?? []) as number[]
  const now = Number(seconds) * 1_000 + Number(micros) / 1_000
  return replies.map(([error, text]) => {
    if (error || time?.[0]) return undefined
    const holder = decodeHolder((text as string | null) ?? '')
    return holder && holder.until >= now ? holder.claim.id : 'free'
  })
}

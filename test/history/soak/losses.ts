/**
 * Faults of servers that take holds away: a server is empty, or its clock steps past the ends of leases. With several
 * servers, such a fault of a minority leaves most holds in place. A lock certainly keeps its state (it stays free, or
 * held by the same caller) if the servers without the fault agree on its state, and are a majority of all servers. All
 * other locks may be taken away from their holders.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeHolder } from '../../../src/kinds/claim.ts'
import { now } from '../recorder.ts'
import { taking } from './fault.ts'
import type { Server } from './server.ts'
import type { Stage } from './stage.ts'
import { lockName, majorityOf } from './terms.ts'

/**
 * What a server says about a lock: the holder's id, or 'free', and when the hold ends, as a monotonic time in ms.
 * Undefined if the server has not answered.
 */
type Said = { readonly id: string; readonly end: number } | undefined
/** What several servers say about all locks: one list for each server, with one entry for each lock. */
type Sight = readonly (readonly Said[])[]

/** A server that does not answer within this many ms counts as away. */
const PATIENCE = 300
/**
 * Two servers know the same renewal of a hold if the hold ends on both within this many ms. Their replies come at
 * slightly different times. Most renewals follow each other after at least 100 ms.
 */
const SAME = 50

/**
 * Calls `forget`, which empties some of several servers, those with the numbers `emptied`. The votes of these servers do
 * not count until every earlier hold has ended, so no other caller gets a lock early. But if less than a majority of the
 * servers still knows a hold, its holder may be notified of a loss before its deadline.
 */
export async function forgetting(stage: Stage, emptied: readonly number[], forget: () => Promise<void>): Promise<void> {
  const from = now()
  const fields = { from, how: 'restart', closed: true } as const
  if (emptied.length >= majorityOf(stage.size)) {
    await forget()
    stage.recorder.record('taken', fields)
  } else {
    const { inDoubt, voted } = await lostBy(stage, emptied, forget)
    for (const key of [...inDoubt, ...voted]) stage.recorder.record('taken', { key, ...fields })
  }
}

/**
 * Calls `step`, which sets a server's clock ahead, past the ends of all leases on this server. If this is the only
 * server, every earlier grant counts as taken away. Otherwise, the step affects a hold in one of two ways:
 * - If the other servers that know the hold are a majority of all servers, no other caller gets the lock. But if the
 *   holder depends on the vote of this server, it may be notified of a loss early.
 * - If the other servers that know the hold are no majority, another caller may get the lock.
 */
export async function outrunning(stage: Stage, { number }: Server, step: () => Promise<void>): Promise<void> {
  if (stage.size === 1) return taking(stage, undefined, 'clock', step)
  const from = now()
  const { inDoubt, voted } = await lostBy(stage, [number], step)
  for (const key of inDoubt) stage.recorder.record('taken', { key, from, how: 'clock' })
  for (const key of voted) stage.recorder.record('taken', { key, from, how: 'clock', closed: true })
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
async function lostBy(
  { servers, size, keys }: Stage,
  lost: readonly number[],
  happen: () => Promise<void>,
): Promise<Lost> {
  const others = servers.filter(({ number }) => !lost.includes(number))
  const meant = servers.filter(({ number }) => lost.includes(number))
  const [before, votes] = await Promise.all([sight(others, keys), sight(meant, keys)])
  await happen()
  const after = await sight(others, keys)
  const doubts = new Set(locksInDoubt(before, after, size, votes))
  const voted = (_: string, lock: number) =>
    !doubts.has(lock) && votes.some(list => (list[lock]?.id ?? 'free') !== 'free')
  return { inDoubt: keys.filter((_, lock) => doubts.has(lock)), voted: keys.filter(voted) }
}

/**
 * Returns the numbers of the locks in doubt. A lock is in doubt if a fault of some servers may take it away from its
 * holder. `before` and `after` are what the other servers said before and after the fault. `lost` is what the affected
 * servers said before the fault. A lock is in doubt in three cases:
 * - No majority of all servers said the same before and after the fault, for example because the lock changed hands.
 * - An affected server had voted for a claim, and the majority did not name this claim. The claim may still win later,
 *   if other servers vote for it, too.
 * - An affected server knew a renewal of the hold that has not reached a majority of all servers without this one. The
 *   holder relies on the renewal, and the other servers let the hold end earlier.
 */
function locksInDoubt(before: Sight, after: Sight, servers: number, lost: Sight): number[] {
  const locks = Math.max(0, ...[...before, ...after].map(list => list.length))
  return Array.from({ length: locks }, (_, lock) => lock).filter(lock => {
    const votes = lost.flatMap(list => list[lock] ?? []).filter(({ id }) => id !== 'free')
    const least = Math.max(...votes.map(({ end }) => end)) - SAME
    const counts = new Map<string, number>()
    for (const [i, list] of before.entries()) {
      const said = after[i]?.[lock]
      if (said === undefined || said.id !== list[lock]?.id || said.end < least) continue
      counts.set(said.id, (counts.get(said.id) ?? 0) + 1)
    }
    const agreed = [...counts.keys()].find(id => (counts.get(id) ?? 0) >= majorityOf(servers))
    return agreed === undefined || votes.some(({ id }) => id !== agreed)
  })
}

function sight(servers: readonly Server[], keys: readonly string[]): Promise<Sight> {
  return Promise.all(servers.map(server => Promise.race([saidBy(server, keys), sleep(PATIENCE, [])])))
}

/** Reads what the server says about each lock. A lock is free once its lease has lapsed by this server's clock. */
async function saidBy({ redis }: Server, keys: readonly string[]): Promise<Said[]> {
  const pipeline = redis.pipeline().time()
  for (const key of keys) pipeline.hget(lockName(key), 'holder')
  const [time, ...replies] = (await pipeline.exec()) ?? []
  const [seconds, micros] = (time?.[1] ?? []) as number[]
  const t = now()
  const ahead = Number(seconds) * 1_000 + Number(micros) / 1_000 - t
  return replies.map(([error, text]) => {
    if (error || time?.[0]) return undefined
    const holder = decodeHolder((text as string | null) ?? '')
    const end = holder ? holder.until - ahead : 0
    return holder && end >= t ? { id: holder.claim.id, end } : { id: 'free', end: Number.POSITIVE_INFINITY }
  })
}

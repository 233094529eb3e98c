/**
 * Reads the state of a lock from its keys, for the checks. Only this file of the simulation knows how lua/ lays a lock out;
 * src/kinds/claim.ts knows the forms of a claim and a holder.
 */
import { type DecodedClaim, decodeClaim, decodeHolder } from '../../src/kinds/claim.ts'
import { namesOf } from '../../src/kinds/mutex/names.ts'
import type { Keyspace } from './redis/keyspace.ts'
import { textOf } from './redis/values.ts'

/** So many tokens after its own are the holder's (lua/shared/unreported.lua). */
const BLOCK = 1_000

/** Who holds the lock, or held it until its lease lapsed. */
export interface Holder {
  readonly token: number
  /** The last token of this grant: the tokens after its own are reserved for hand-offs within the client. */
  readonly lastToken: number
  readonly claim: DecodedClaim
}

/** A waiter of the fair queue. */
export interface Place {
  readonly claim: DecodedClaim
  readonly ticket: number
  /** ms by the server's clock; until then a grant does not pass the waiter over. */
  readonly liveUntil: number
}

/** A lock at one moment. */
export interface LockState {
  readonly holder: Holder | undefined
  /** The ids of all recorded holds, also of lapsed ones, with the ms by the server's clock until which each lives. */
  readonly holds: ReadonlyMap<string, number>
  /** In the order of the tickets. */
  readonly queue: readonly Place[]
  /** ms by the server's clock; until then none of the lock's keys expires. */
  readonly keptUntil: number
}

export const nothing: LockState = {
  holder: undefined,
  holds: new Map(),
  queue: [],
  keptUntil: Number.POSITIVE_INFINITY,
}

/** The key of a lock's fair queue: its members are claims, and their scores are tickets. */
export function queueOf(lock: string): string {
  return namesOf(lock).queue
}

export function readLock(keys: Keyspace, lock: string): LockState {
  const names = namesOf(lock)
  const deadlines = keys.sortedSet(names.expiry)
  const places = keys.sortedSet(names.queue)?.members.map(({ member, score: ticket }): Place => {
    const claim = claimOf(member)
    const own = (ticket + claim.headStart) / 1000 + claim.waiterTtl
    return { claim, ticket, liveUntil: Math.max(own, deadlines?.score(claim.id) ?? own) }
  })
  const lives = Object.values(names).map(name => keys.livesUntil(name) ?? Number.POSITIVE_INFINITY)
  return { ...readHolder(keys, lock), queue: places ?? [], keptUntil: Math.min(...lives) }
}

/** Ids of the holds whose lease has not lapsed. */
export function liveHolds({ holds }: LockState, now: number): string[] {
  return [...holds.keys()].filter(id => isHeld(holds, id, now))
}

export function isHeld(holds: ReadonlyMap<string, number>, id: string, now: number): boolean {
  return (holds.get(id) ?? Number.NEGATIVE_INFINITY) >= now
}

export function claimOf(bytes: string): DecodedClaim {
  const claim = decodeClaim(textOf(bytes))
  if (!claim) throw new Error(`not a claim: ${bytes}`)
  return claim
}

function readHolder(keys: Keyspace, lock: string): Pick<LockState, 'holder' | 'holds'> {
  const hash = keys.hash(lock)
  const text = hash?.get('holder')
  if (!hash || text === undefined) return nothing
  const known = decodeHolder(textOf(text))
  if (!known) throw new Error(`not a holder: ${text}`)
  const { token, until, claim } = known
  const holder = { token, lastToken: token + BLOCK, claim }
  if (!hash.has('holds')) return { holder, holds: new Map([[claim.id, until]]) }
  const all = keys.sortedSet(namesOf(lock).holds)?.members ?? []
  return { holder, holds: new Map(all.map(({ member, score }) => [member, score])) }
}

/**
 * Reads the state of a lock from its keys, for the checks. In the simulation, only this file knows the layout of a
 * lock's keys; it uses src/kinds/claim.ts to decode claims and holders.
 */
import { type DecodedClaim, decodeClaim, decodeHolder, decodePermitsClaim } from '../../src/kinds/claim.ts'
import { namesOf as namesIn } from '../kit/names.ts'
import type { Keyspace } from './redis/keyspace.ts'
import { textOf } from './redis/values.ts'

/** A holder may issue this many tokens after the token of its grant (lua/holder.lua). */
const BLOCK = 1_000

/** The keys of a semaphore or a read-write lock contain these words. The keys of a mutex contain neither. */
const SEMAPHORE = '%semaphore/'
const READ_WRITE = '%readWrite/'
/** The number of permits that a writer wants (src/kinds/permits/read-write.ts). */
const ALL = 1_000_000_000
/**
 * The length of an id. In the hash of a semaphore or a read-write lock, each field whose name has this length records a
 * holder: its token and its claim.
 */
const ID_LENGTH = 28
const TOKEN_LENGTH = 16

/**
 * After the release of a hold with `minHold`, the first character of its id is this one in Redis, until the time has passed
 * (lua/holder.lua).
 */
const KEPT = '!'

/** What the deadline of a waiter has more than that of a hold (lua/holder.lua). */
const WAITER = 10_000_000_000_000

/** A recorded holder; its lease may have lapsed. */
export interface Holder {
  readonly token: number
  /**
   * The last token of this grant. The tokens after `token`, up to this one, are reserved for hand-offs within the
   * client.
   */
  readonly lastToken: number
  readonly claim: DecodedClaim
}

/** A waiter of the fair queue. */
export interface Place {
  readonly claim: DecodedClaim
  readonly ticket: number
  /** A grant may pass over the waiter only after this time, in ms by the server's clock. */
  readonly liveUntil: number
}

/** A lock at one moment. */
export interface LockState {
  /** The holder of a mutex. */
  readonly holder: Holder | undefined
  /** The holders of a semaphore or a read-write lock, by their ids. */
  readonly holders: ReadonlyMap<string, Holder>
  /** All recorded holds, including lapsed ones. Maps each id to the end of its lease, in ms by the server's clock. */
  readonly holds: ReadonlyMap<string, number>
  /**
   * The queued waiters, by ticket; for a read-write lock, first all writers, then all readers; for a semaphore, each group
   * by itself.
   */
  readonly queue: readonly Place[]
  /** What is known of the groups of a semaphore (lua/groups.lua). */
  readonly shares: ReadonlyMap<string, string>
  /** Before this time, none of the lock's keys expires; ms by the server's clock. */
  readonly keptUntil: number
}

export const nothing: LockState = {
  holder: undefined,
  holders: new Map(),
  holds: new Map(),
  queue: [],
  shares: new Map(),
  keptUntil: Number.POSITIVE_INFINITY,
}

/** Returns the id that a hold has in Redis after its release, if it has a `minHold` that has not passed. */
export function keptId(id: string): string {
  return KEPT + id.slice(1)
}

export function isKept(id: string): boolean {
  return id.startsWith(KEPT)
}

/** Returns the keys of a lock's fair queues. */
export function queuesOf(lock: string): string[] {
  if (lock.includes(READ_WRITE)) return [`${lock}:q`, `${lock}:r`]
  return isShared(lock) ? [`${lock}:q`, `${lock}:w`] : [`${lock}:q`]
}

/** Reads an entry of a queue. In the queue of a semaphore's groups, the ticket is a part of the member. */
export function entryOf(queue: string, member: string, score: number): { claim: string; ticket: number } {
  if (!queue.endsWith(':w')) return { claim: textOf(member), ticket: score }
  return { claim: textOf(member.slice(TOKEN_LENGTH)), ticket: Number(member.slice(0, TOKEN_LENGTH)) }
}

/** Returns all keys of a lock. The first one is `lock` itself. */
export function keysOf(lock: string): string[] {
  return Object.values(namesOf(lock))
}

/** Whether a key belongs to the queue. The loss of such a key does not affect the holders. */
export function isQueue(key: string): boolean {
  return /:[qrwts]$/.test(key)
}

export function isShared(lock: string): boolean {
  return lock.includes(SEMAPHORE) || isReadWrite(lock)
}

export function isReadWrite(lock: string): boolean {
  return lock.includes(READ_WRITE)
}

/** Whether a claim is that of a writer of a read-write lock. */
export function writes({ wants }: DecodedClaim): boolean {
  return wants?.[0] === ALL
}

function namesOf(lock: string) {
  const names = namesIn(lock, 'lock', 'queue', 'deadlines')
  if (isReadWrite(lock)) return { ...names, ...namesIn(lock, 'readers') }
  return isShared(lock) ? { ...names, ...namesIn(lock, 'waiting', 'turns', 'shares') } : names
}

export function readLock(keys: Keyspace, lock: string): LockState {
  const names = namesOf(lock)
  const deadlines = keys.sortedSet(names.deadlines)
  const entries = queuesOf(lock).flatMap(name =>
    (keys.sortedSet(name)?.members ?? []).map(({ member, score }) => entryOf(name, member, score)),
  )
  const places = entries.map(({ claim: text, ticket }): Place => {
    const claim = claimOf(lock, text)
    const own = (ticket + claim.headStart) / 1000 + claim.waiterTtl
    return { claim, ticket, liveUntil: Math.max(own, (deadlines?.score(claim.id) ?? 0) - WAITER) }
  })
  const lives = Object.values(names).map(name => keys.livesUntil(name) ?? Number.POSITIVE_INFINITY)
  const held = isShared(lock) ? readHolders(keys, lock) : readHolder(keys, lock)
  const shares = (isShared(lock) && keys.hash(`${lock}:s`)) || nothing.shares
  return { ...nothing, ...held, queue: places, shares: new Map(shares), keptUntil: Math.min(...lives) }
}

/**
 * Returns what a majority of the servers says about a lock: which holds they have, and who holds. `queue` and `holders`
 * are those of a single server, and empty if there are several.
 */
export function agreed(states: readonly LockState[], now: number): LockState {
  if (states.length === 1) return states[0]!
  const live = states.flatMap(state => liveHolds(state, now))
  const held = live.filter(
    (id, i) => live.indexOf(id) === i && 2 * live.filter(one => one === id).length > states.length,
  )
  const holder = states.find(state => state.holder && held.includes(state.holder.claim.id))?.holder
  return { ...nothing, holder, holds: new Map(held.map(id => [id, now])) }
}

/** Returns the ids of the holds whose lease has not lapsed. */
export function liveHolds({ holds }: LockState, now: number): string[] {
  return [...holds.keys()].filter(id => isHeld(holds, id, now))
}

export function isHeld(holds: ReadonlyMap<string, number>, id: string, now: number): boolean {
  return (holds.get(id) ?? Number.NEGATIVE_INFINITY) >= now
}

/** Returns the holders of a semaphore or a read-write lock whose lease has not lapsed. */
export function liveHolders({ holders, holds }: LockState, now: number): Holder[] {
  return [...holders.values()].filter(({ claim }) => isHeld(holds, claim.id, now))
}

/** Returns how many permits the live holds take together. */
export function takenOf(state: LockState, now: number): number {
  return liveHolders(state, now).reduce((sum, { claim }) => sum + claim.wants![0], 0)
}

/** Returns how many permits the live holds of a group take together. */
export function takenByGroup(state: LockState, group: string | undefined, now: number): number {
  const own = liveHolders(state, now).filter(({ claim }) => claim.group?.name === group)
  return own.reduce((sum, { claim }) => sum + claim.wants![0], 0)
}

/** Whether the limit of a claim's group leaves room for the claim. */
export function hasRoom(
  state: LockState,
  { wants, group }: Pick<DecodedClaim, 'wants' | 'group'>,
  now: number,
): boolean {
  return group?.limit === undefined || takenByGroup(state, group.name, now) + wants![0] <= group.limit
}

/** Returns the weight of a group. */
export function weightOf({ shares }: LockState, group: string): number {
  return Number(shares.get(`w${group}`) ?? 1)
}

/** Returns the semaphore's size. If the claims of its holders give different sizes, returns the largest. */
export function largestOf({ holders }: LockState): number {
  return Math.max(...[...holders.values()].map(({ claim }) => claim.wants![1]))
}

/** Decodes a claim. `lock` is the key of the claim's lock, and this key shows the kind of the lock. */
export function claimOf(lock: string, bytes: string): DecodedClaim {
  const claim = isShared(lock) ? decodePermitsClaim(textOf(bytes)) : decodeClaim(textOf(bytes))
  if (!claim) throw new Error(`not a claim: ${bytes}`)
  return claim
}

function readHolder(keys: Keyspace, lock: string): Pick<LockState, 'holder' | 'holds'> {
  const hash = keys.hash(lock)
  const text = hash?.get('holder')
  if (!hash || text === undefined) return nothing
  const known = decodeHolder(textOf(text))
  if (!known) throw new Error(`not a holder: ${text}`)
  const { token, until } = known
  const kept = text.split(' ')[2]!.startsWith(KEPT)
  const claim = kept ? { ...known.claim, id: keptId(known.claim.id) } : known.claim
  const holder = { token, lastToken: token + BLOCK, claim }
  if (!hash.has('holds')) return { holder, holds: new Map([[claim.id, until]]) }
  const all = keys.sortedSet(`${lock}:d`)?.members ?? []
  const holds = all.filter(({ score }) => score < WAITER)
  return { holder, holds: new Map(holds.map(({ member, score }) => [member, score])) }
}

function readHolders(keys: Keyspace, lock: string): Pick<LockState, 'holders' | 'holds'> {
  const hash = keys.hash(lock) ?? new Map<string, string>()
  const holders = new Map<string, Holder>()
  let taken = 0
  for (const [id, record] of hash) {
    if (id.length !== ID_LENGTH) continue
    const token = Number(record.slice(0, TOKEN_LENGTH))
    const claim = claimOf(lock, record.slice(TOKEN_LENGTH + 1))
    taken += claim.wants![0]
    holders.set(id, { token, lastToken: token, claim: { ...claim, id } })
  }
  const numbers = [...holders.values()].flatMap(({ claim }) => claim.slots ?? []).sort((a, b) => a - b)
  const used = [...(hash.get('slots') ?? '')].flatMap((mark, number) => (mark === '1' ? [number] : []))
  if (`${numbers}` !== `${used}`) throw new Error(`the numbers ${numbers} are held, not ${used}`)
  if (taken !== Number(hash.get('taken') ?? 0)) throw new Error(`${taken} permits are held, not ${hash.get('taken')}`)
  for (const [field, sum] of hash) {
    if (!field.startsWith(':')) continue
    const own = [...holders.values()].filter(({ claim: { group } }) => group && `:${group.name}` === field)
    const found = own.reduce((all, { claim }) => all + claim.wants![0], 0)
    if (found !== Number(sum)) throw new Error(`the group ${field} holds ${found} permits, not ${sum}`)
  }
  const deadlines = keys.sortedSet(`${lock}:d`)
  const holds = new Map<string, number>()
  for (const id of holders.keys()) {
    const end = deadlines?.score(id)
    // If the sorted set of deadlines was lost, all holds have ended. If the set exists, it must have a deadline for
    // each holder.
    if (deadlines && end === undefined) throw new Error(`${id} holds without end`)
    if (end !== undefined) holds.set(id, end)
  }
  return { holders, holds }
}

/** The callers that ask for locks in these tests. */
import { encodeClaim } from '../../src/kinds/claim.ts'
import { newClientId } from '../../src/redis/ids.ts'
import { newHoldId } from '../kit/ids.ts'

export interface Caller {
  /** The caller's name, which is also its label. */
  readonly name: string
  readonly owner: string
  /** The id of the caller's client, which is also the name of the client's inbox. Default: a client of its own. */
  readonly client: string
  readonly id: string
  /** The requested lease, ms. */
  readonly lease: number
  /** How long a waiter counts as alive after its last heartbeat, ms. */
  readonly ttl: number
  /** By how many µs the caller's ticket is smaller than the time at which the caller joins the queue. */
  readonly headStart: number
  /** How long the lock stays taken at least, ms. */
  readonly minHold?: number
  /** For `TestLock.given`: how many ms ago the caller joined the queue. */
  readonly joinedAgo?: number
  /** For `TestLock.given`: in how many ms the waiter counts as dead, unless it sends another heartbeat. */
  readonly deadlineIn?: number
}

export function caller(name: string, traits: Partial<Caller> = {}): Caller {
  const client = traits.client ?? newClientId()
  const id = newHoldId(client)
  return { name, owner: `owner of ${name}`, client, id, lease: 10_000, ttl: 5_000, headStart: 0, ...traits }
}

/** Makes a caller that names no owner, so the scripts use its id as the owner. */
export function anonymous(name: string, traits: Partial<Caller> = {}): Caller {
  const who = caller(name, traits)
  return { ...who, owner: who.id }
}

/** Returns the claim of the caller. A claim is one text that contains everything that a script needs for a grant. */
export function claimOf({ id, lease, ttl, headStart, owner, name: label, minHold }: Caller): string {
  return encodeClaim({ id, owner, label, lease, headStart: headStart / 1000, minHold }, ttl)
}

/** Makes another call of the same owner and client. */
export function again(first: Caller, traits: Partial<Caller> = {}): Caller {
  return { ...first, id: newHoldId(first.client), ...traits }
}

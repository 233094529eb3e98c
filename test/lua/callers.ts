/** Who asks for a lock in these tests. */
import { encodeClaim } from '../../src/kinds/claim.ts'
import { newClientId, newHoldId } from '../../src/redis/ids.ts'

export interface Caller {
  /** Its label too. */
  readonly name: string
  readonly owner: string
  /** The name of its client's inbox. Every caller is a client of its own unless told otherwise. */
  readonly client: string
  readonly id: string
  /** ms */
  readonly lease: number
  /** The waiter's own expiry, ms. */
  readonly ttl: number
  /** µs */
  readonly headStart: number
  /** How long ago it joined a queue that is given, ms. */
  readonly joinedAgo?: number
  /** In how many ms the deadline ends that its last heartbeat recorded in a queue that is given. */
  readonly deadlineIn?: number
}

export function caller(name: string, traits: Partial<Caller> = {}): Caller {
  const client = traits.client ?? newClientId()
  const id = newHoldId(client)
  return { name, owner: `owner of ${name}`, client, id, lease: 10_000, ttl: 5_000, headStart: 0, ...traits }
}

/** One without a name: its owner is its own id. */
export function anonymous(name: string, traits: Partial<Caller> = {}): Caller {
  const who = caller(name, traits)
  return { ...who, owner: who.id }
}

/** Its claim: everything that a grant needs. */
export function claimOf({ id, lease, ttl, headStart, owner, name: label }: Caller): string {
  return encodeClaim({ id, owner, label, lease, headStart: headStart / 1000 }, ttl)
}

/** Another hold of the same owner, by the same client. */
export function again(first: Caller, traits: Partial<Caller> = {}): Caller {
  return { ...first, id: newHoldId(first.client), ...traits }
}

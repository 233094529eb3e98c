/**
 * A claim as it is stored in Redis: one text with everything that a grant needs.
 *
 *   mutex:                  "<id> <owner bytes> <lease ms> <waiterTtl ms> <headStart µs> <owner><label>"
 *   semaphore, read-write:  "<id> <owner bytes> <lease ms> <waiterTtl ms> <headStart µs> <permits>/<of> <owner><label>"
 *
 * A client sends the claim with its request. While the waiter is queued, the claim is its entry in the queue; after the
 * grant, it is part of the lock's `holder`. Owner and label may contain any character, so the claim states the owner's
 * length in bytes. If that length is 0, the caller gave no owner, and the claim's id is its owner. Scripts read claims
 * with the constants of lua/shared/claim.lua.
 */
import type { Claim } from '../kind.ts'

export type Claimed = Pick<Claim, 'id' | 'owner' | 'label' | 'lease' | 'headStart' | 'wants'>

export interface DecodedClaim {
  readonly id: string
  /** The owner that the caller gave, or the claim's id if the caller gave none. */
  readonly owner: string
  readonly label: string
  /** The length of the lease, in ms. */
  readonly lease: number
  /** The expiry of the waiter in the queue, in ms. */
  readonly waiterTtl: number
  /** By how much the waiter's ticket is earlier than its request, in µs. */
  readonly headStart: number
  /** How many permits the claim wants, and how many the lock has; absent for a mutex. */
  readonly wants?: readonly [permits: number, of: number]
}

export interface DecodedHolder {
  readonly token: number
  /** When the holder's lease ends, in ms of the server's clock. */
  readonly until: number
  readonly claim: DecodedClaim
}

/**
 * Returns a claim as text. `waiterTtl` is in ms. If all claims of a kind want the same permits, `wants` is given and
 * replaces `claim.wants`.
 */
export function encodeClaim(claim: Claimed, waiterTtl: number, wants = claim.wants): string {
  const { id, owner, label, lease, headStart } = claim
  const queueing = `${lease} ${waiterTtl} ${headStart && Math.round(headStart * 1000)}`
  const terms = wants === undefined ? queueing : `${queueing} ${wants}`
  return owner !== id ? `${id} ${Buffer.byteLength(owner)} ${terms} ${owner}${label}` : `${id} 0 ${terms} ${label}`
}

const permitsClaim = /^(\S+ \d+ \d+ \d+ \d+) (\d+)\/(\d+)( [\s\S]*)$/

/** Reads a claim of a semaphore or a read-write lock. Returns undefined if the text is not such a claim. */
export function decodePermitsClaim(text: string): (DecodedClaim & { wants: [number, number] }) | undefined {
  const [, before, permits, of, names] = permitsClaim.exec(text) ?? []
  const claim = before && decodeClaim(before + names)
  return claim ? { ...claim, wants: [Number(permits), Number(of)] } : undefined
}

/** Reads a claim of a mutex. Returns undefined if the text is not a claim. */
export function decodeClaim(text: string): DecodedClaim | undefined {
  const parts = /^(\S+) (\d+) (\d+) (\d+) (\d+) ([\s\S]*)$/.exec(text)
  if (!parts) return undefined
  const [, id, bytes, lease, waiterTtl, headStart, names] = parts as unknown as string[] & { 1: string; 6: string }
  const { owner = id, label } = decodeNames(names, Number(bytes))
  return { id, owner, label, lease: Number(lease), waiterTtl: Number(waiterTtl), headStart: Number(headStart) }
}

/** Splits the last part of a claim. `owner` is undefined if the caller gave none. */
export function decodeNames(text: string, bytes: number): { owner: string | undefined; label: string } {
  if (bytes === 0) return { owner: undefined, label: text }
  const names = Buffer.from(text)
  return { owner: names.toString('utf8', 0, bytes), label: names.toString('utf8', bytes) }
}

/**
 * Reads a mutex's `holder`, which is `<token> <from> <claim>`. The lease begins at `from`, and the claim has its
 * length. Returns undefined if the text is not a holder.
 */
export function decodeHolder(text: string): DecodedHolder | undefined {
  const [, token, from, rest] = /^(\d+) (\d+) ([\s\S]*)$/.exec(text) ?? []
  const claim = rest === undefined ? undefined : decodeClaim(rest)
  return claim && { token: Number(token), until: Math.floor(Number(from) / 1000) + claim.lease, claim }
}

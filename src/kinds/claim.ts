/**
 * A claim as Redis has it: everything that a grant needs, in one text.
 *
 *   "<id> <owner bytes> <lease ms> <waiterTtl ms> <headStart µs> <owner><label>"
 *   "<id> <owner bytes> <lease ms> <waiterTtl ms> <headStart µs> <permits>/<of> <owner><label>"    of a semaphore, and of a read-write lock
 *
 * A client sends it with its request; it waits in the queue, and stands in the lock's `holder` afterwards. The owner is
 * measured in bytes, because it may contain whatever a string may, and so may the label, which is the rest. 0 bytes: the
 * caller has no name, and its owner is the id. Scripts read it by the constants of lua/shared/claim.lua.
 */
import type { Claim } from '../kind.ts'

export type Claimed = Pick<Claim, 'id' | 'owner' | 'label' | 'lease' | 'headStart' | 'wants'>

export interface DecodedClaim {
  readonly id: string
  /** The id itself, if the caller has no name. */
  readonly owner: string
  readonly label: string
  /** ms */
  readonly lease: number
  /** ms */
  readonly waiterTtl: number
  /** µs, as tickets are. */
  readonly headStart: number
  /** How many permits, and of how many; undefined: a mutex has none. */
  readonly wants?: readonly [permits: number, of: number]
}

export interface DecodedHolder {
  readonly token: number
  /** ms by the server's clock: the end of the holder's lease. */
  readonly until: number
  readonly claim: DecodedClaim
}

/** `waiterTtl`: ms. `wants`: what every claim of this kind does. */
export function encodeClaim(claim: Claimed, waiterTtl: number, wants = claim.wants): string {
  const { id, owner, label, lease, headStart } = claim
  const queueing = `${lease} ${waiterTtl} ${headStart && Math.round(headStart * 1000)}`
  const terms = wants === undefined ? queueing : `${queueing} ${wants}`
  return owner !== id ? `${id} ${Buffer.byteLength(owner)} ${terms} ${owner}${label}` : `${id} 0 ${terms} ${label}`
}

const permitsClaim = /^(\S+ \d+ \d+ \d+ \d+) (\d+)\/(\d+)( [\s\S]*)$/

/** Of what has permits. Undefined: the text is no such claim. */
export function decodePermitsClaim(text: string): (DecodedClaim & { wants: [number, number] }) | undefined {
  const [, before, permits, of, names] = permitsClaim.exec(text) ?? []
  const claim = before && decodeClaim(before + names)
  return claim ? { ...claim, wants: [Number(permits), Number(of)] } : undefined
}

/** Undefined: the text is no claim. */
export function decodeClaim(text: string): DecodedClaim | undefined {
  const parts = /^(\S+) (\d+) (\d+) (\d+) (\d+) ([\s\S]*)$/.exec(text)
  if (!parts) return undefined
  const [, id, bytes, lease, waiterTtl, headStart, names] = parts as unknown as string[] & { 1: string; 6: string }
  const { owner = id, label } = decodeNames(names, Number(bytes))
  return { id, owner, label, lease: Number(lease), waiterTtl: Number(waiterTtl), headStart: Number(headStart) }
}

/** The owner and the label, which end a claim; undefined: the owner has no name. */
export function decodeNames(text: string, bytes: number): { owner: string | undefined; label: string } {
  if (bytes === 0) return { owner: undefined, label: text }
  const names = Buffer.from(text)
  return { owner: names.toString('utf8', 0, bytes), label: names.toString('utf8', bytes) }
}

/**
 * The text of a lock's `holder`, which is `<token> <from> <claim>`: the lease lasts from there as long as the claim says.
 * Undefined: it is none.
 */
export function decodeHolder(text: string): DecodedHolder | undefined {
  const [, token, from, rest] = /^(\d+) (\d+) ([\s\S]*)$/.exec(text) ?? []
  const claim = rest === undefined ? undefined : decodeClaim(rest)
  return claim && { token: Number(token), until: Math.floor(Number(from) / 1000) + claim.lease, claim }
}

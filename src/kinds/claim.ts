/**
 * A claim as it is stored in Redis: one text with everything that a grant needs.
 *
 *   mutex:                  "<id> <owner bytes> <lease ms> <waiterTtl ms> <headStart µs> <owner><label>"
 *   semaphore, read-write:  "<id> <owner bytes> <lease ms> <waiterTtl ms> <headStart µs> <permits>/<of> <owner><label>"
 *
 * `<permits>` is how many permits the claim wants, and `<of>` is how many the lock has. Two terms may have a suffix:
 *
 *   <lease ms>   "<ms>m<minHold ms>,<lease ms>": the lock stays taken for `minHold` at least. The first number is the
 *                longer of both: Redis keeps the hold for that long, even if its process ends. A hold that was released
 *                before `minHold` has passed stays in Redis until then, as one that nobody can renew or re-enter: the
 *                first character of its id becomes "!", and is kept in this suffix, ",<character>".
 *   <of>         "<of>s": the claim asks for the numbers of its permits. Of a hold, they follow: "<of>s0.3". And then
 *                ";<limit>;<weight>;<group>", if the claim has a group. Limit and weight may be empty, and the group is
 *                encoded as a part of a URL, so it has no spaces and no semicolons.
 *
 * Owner and label may contain any
 * character, so the claim states the owner's length in bytes. If that length is 0, the caller gave no owner, and the
 * claim's id serves as the owner.
 *
 * A client sends the claim with its request. While the waiter is queued, the claim is its entry in the queue. After the
 * grant, the claim is a part of what Redis stores about the holder. Scripts read claims with the constants of
 * lua/lock.lua.
 */
import { type Claim, slotsOf } from '../kind.ts'

export type Claimed = Pick<Claim, 'id' | 'owner' | 'label' | 'lease' | 'headStart' | 'wants' | 'minHold'>

export interface DecodedClaim {
  readonly id: string
  /** The owner that the caller gave, or the claim's id if the caller gave none. */
  readonly owner: string
  readonly label: string
  /** The length of the lease, in ms. */
  readonly lease: number
  /** After how many ms the waiter expires if it sends no heartbeat. */
  readonly waiterTtl: number
  /** By how many µs the waiter's ticket is smaller than the time at which the waiter joined. */
  readonly headStart: number
  /** How many permits the claim wants, and how many the lock has; absent for a mutex. */
  readonly wants?: readonly [permits: number, of: number]
  readonly group?: ClaimedGroup | undefined
  /** The numbers of a hold's permits, if its call has asked for them. */
  readonly slots?: readonly number[]
}

/** Stands for the limit of a group that may have all permits (lua/groups.lua). */
export const NO_LIMIT = '-'

/** The group of a claim. */
export interface ClaimedGroup {
  readonly name: string
  /** How many permits the group may have at a time; undefined: as many as there are. */
  readonly limit: number | undefined
  /** The weight that the claim gives to the group; undefined: it leaves the weight as it is. */
  readonly weight: number | undefined
}

/** What a claim asks of a lock with permits. */
export interface Wants {
  readonly permits: number
  readonly of: number
  /** The numbers of the permits as text; undefined: the claim asks for none; empty: it asks, and has none yet. */
  readonly numbers: string | undefined
  readonly group: ClaimedGroup | undefined
}

const permitsOf = '(\\d+)\\/(\\d+)(?:s([\\d.]*))?(?:;(\\d*);([^;]*);(\\S+))?'
const terms = new RegExp(`^${permitsOf}$`)

/** Reads `Claim.wants`. Without it, a claim wants the one permit of a lock. */
export function decodeWants(text = '1/1'): Wants {
  const [, permits, of, numbers, limit, weight, name] = terms.exec(text) ?? []
  return { permits: Number(permits), of: Number(of), numbers, group: groupOf(limit, weight, name) }
}

function groupOf(limit?: string, weight?: string, name?: string): ClaimedGroup | undefined {
  if (name === undefined) return undefined
  return {
    name: decodeURIComponent(name),
    limit: limit ? Number(limit) : undefined,
    weight: weight ? Number(weight) : undefined,
  }
}

export interface DecodedHolder {
  readonly token: number
  /** When the holder's lease ends, in ms of the server's clock. */
  readonly until: number
  readonly claim: DecodedClaim
}

/**
 * Returns a claim as text. `waiterTtl`: in ms. `wants`: used instead of `claim.wants`, by kinds whose claims all want
 * the same number of permits.
 */
export function encodeClaim(claim: Claimed, waiterTtl: number, wants = claim.wants): string {
  const { id, owner, label, lease, headStart, minHold } = claim
  const length = minHold ? `${Math.max(lease, minHold)}m${minHold},${lease}` : lease
  const queueing = `${length} ${waiterTtl} ${headStart && Math.round(headStart * 1000)}`
  const terms = wants === undefined ? queueing : `${queueing} ${wants}`
  return owner !== id ? `${id} ${Buffer.byteLength(owner)} ${terms} ${owner}${label}` : `${id} 0 ${terms} ${label}`
}

const permitsClaim = new RegExp(`^(\\S+ \\d+ \\S+ \\d+ \\d+) ${permitsOf}( [\\s\\S]*)$`)

/** Reads a claim of a semaphore or a read-write lock. Returns undefined if the text is not such a claim. */
export function decodePermitsClaim(text: string): (DecodedClaim & { wants: [number, number] }) | undefined {
  const [, before, permits, of, numbers, limit, weight, name, names] = permitsClaim.exec(text) ?? []
  const claim = before && decodeClaim(before + names)
  if (!claim) return undefined
  const slots = numbers && { slots: slotsOf(numbers) }
  return { ...claim, wants: [Number(permits), Number(of)], group: groupOf(limit, weight, name), ...slots }
}

/** Reads a claim of a mutex. Returns undefined if the text is not a claim. */
export function decodeClaim(text: string): DecodedClaim | undefined {
  const parts = /^(\S+) (\d+) (\d+)(?:m\d+,\d+(?:,(\S))?)? (\d+) (\d+) ([\s\S]*)$/.exec(text)
  if (!parts) return undefined
  type Parts = string[] & { 1: string; 7: string }
  const [, known, bytes, lease, first, waiterTtl, headStart, names] = parts as unknown as Parts
  const id = first ? first + known.slice(1) : known
  const { owner = id, label } = decodeNames(names, Number(bytes))
  return { id, owner, label, lease: Number(lease), waiterTtl: Number(waiterTtl), headStart: Number(headStart) }
}

/** Splits `<owner><label>`, the last part of a claim. `bytes`: the owner's length; 0 if the caller gave no owner. */
export function decodeNames(text: string, bytes: number): { owner: string | undefined; label: string } {
  if (bytes === 0) return { owner: undefined, label: text }
  const names = Buffer.from(text)
  return { owner: names.toString('utf8', 0, bytes), label: names.toString('utf8', bytes) }
}

/**
 * Reads a mutex's `holder`, which is `<token> <from> <claim>`. `from` says when the lease began, in µs, and the claim
 * says how long it is. Returns undefined if the text is not a holder.
 */
export function decodeHolder(text: string): DecodedHolder | undefined {
  const [, token, from, rest] = /^(\d+) (\d+) ([\s\S]*)$/.exec(text) ?? []
  const claim = rest === undefined ? undefined : decodeClaim(rest)
  return claim && { token: Number(token), until: Math.floor(Number(from) / 1000) + claim.lease, claim }
}

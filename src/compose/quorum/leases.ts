/**
 * What this client knows of the longest leases: for how long the holders may rely on a server that has lost its data
 * (`Standing` in member.ts). A holder may have asked for more than this client ever did. Then only a refusal tells, so
 * what it has shown is kept until that hold is over. The server that refused may be gone by the next request:
 *
 *   A holds the lock on servers 1 and 2 for an hour. Server 2 comes back empty. Server 1 refuses the lock to B, and is
 *   then lost. If B had forgotten that refusal, B would get the lock from servers 2 and 3: two holders (I1).
 */
import type { Clock } from '../../clock.ts'

/** How far the clocks of a server and of this client may drift apart, as a fraction of the time that passes. */
export const DRIFT = 0.01

/**
 * A lock for which this client has asked for a long lease may have it in other clients again, so its longest lease is
 * remembered for at least this long, in ms.
 */
const RETURNS = 3_600_000

/** A hold of another caller, as a server has reported it. */
interface Shown {
  readonly server: number
  /** The connection over which the report came (`Member.epoch`). */
  readonly epoch: number
  /** When the hold may have begun, at the earliest, in monotonic ms. */
  readonly begun: number
  /** When it ends, at the latest, in monotonic ms. */
  readonly ends: number
}

/** Since when a server has kept its data, as far as this client knows (`Member`). */
interface Memory {
  readonly epoch: number
  readonly keepsSince: number
}

/** The longest leases that this client knows of. Most locks have the usual one, so only longer ones are recorded. */
export class Leases {
  readonly #clock: Clock
  readonly #usual: number
  /** By key: the longest lease, and when one that is longer than the usual lease was last asked for. */
  readonly #longer = new Map<string, { readonly lease: number; readonly asked: number }>()
  /** By key: the holds that refusals have shown, with more time left than the longest lease. */
  readonly #shown = new Map<string, readonly Shown[]>()
  /** The numbers of recorded leases and of shown holds at which those are removed that have ended. */
  #full = 1_000
  #crowded = 1_000

  /** `usual`: the lease of the calls that ask for none, in ms. */
  constructor(clock: Clock, usual: number) {
    this.#clock = clock
    this.#usual = usual
  }

  /** Records that this client asks for a lease of `lease` ms. */
  asks(key: string, lease: number): void {
    if (lease <= this.#usual) return
    const now = this.#clock.now()
    const known = this.#longer.get(key)
    this.#longer.set(key, { lease: Math.max(lease, known?.lease ?? 0), asked: now })
    if (this.#longer.size < this.#full) return
    for (const [each, { lease, asked }] of this.#longer) if (now - asked > lease + RETURNS) this.#longer.delete(each)
    this.#full = 1_000 + 2 * this.#longer.size
  }

  /**
   * Records what a server has said of the lock. It has refused the lock, because of a hold that began at `begun` or later
   * and lasts for another `ttl` ms; 0: it has voted. So a hold that it reported before has ended. But if the connection
   * has been lost meanwhile, and the server has kept its data only since `keepsSince`, it may have lost that hold.
   */
  says(key: string, server: number, { epoch, keepsSince }: Memory, ttl = 0, begun = 0): void {
    const known = this.#shown.get(key)
    if (!known && ttl <= this.longest(key)) return
    const now = this.#clock.now()
    const answered = (hold: Shown) => hold.server === server && (hold.epoch === epoch || hold.begun >= keepsSince)
    const all = (known ?? []).filter(hold => hold.ends > now && !answered(hold))
    if (ttl > this.longest(key) || (ttl > 0 && known?.some(answered)))
      all.push({ server, epoch, begun, ends: now + ttl * (1 + DRIFT) })
    if (all.length > 0) this.#shown.set(key, all)
    else this.#shown.delete(key)
    if (known || this.#shown.size < this.#crowded) return
    for (const [each, holds] of this.#shown) if (holds.every(({ ends }) => ends <= now)) this.#shown.delete(each)
    this.#crowded = 1_000 + 2 * this.#shown.size
  }

  /**
   * Returns the time until which a hold may last of which a server knows nothing that has kept its data only since
   * `since`: the end of an older hold that a refusal has shown. −∞: no refusal has shown one.
   */
  lasts(key: string | undefined, since: number): number {
    let until = Number.NEGATIVE_INFINITY
    const shown = key === undefined ? undefined : this.#shown.get(key)
    if (shown) for (const hold of shown) if (hold.begun < since) until = Math.max(until, hold.ends)
    return until
  }

  /** The longest lease of the lock of `key`, in ms; without `key`, the usual lease. */
  longest(key?: string): number {
    return (key !== undefined && this.#longer.get(key)?.lease) || this.#usual
  }

  /** The longest lease of all locks, in ms. */
  get longestOfAll(): number {
    let most = this.#usual
    for (const { lease } of this.#longer.values()) most = Math.max(most, lease)
    return most
  }
}

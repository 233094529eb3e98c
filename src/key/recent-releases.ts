/**
 * Remembers the releases of the last seconds, and sends those again that another server has missed.
 *
 * Redis copies its data to replicas after it has answered. So a server that takes over may lack the last writes. When
 * sentinels make a planned failover, this is even the rule: from the promotion until the clients learn of it, about a
 * second passes, and the old master goes on answering. A hold that the new master knows, and that was released in that
 * second, is then a hold without a holder. Nothing would end it before its lease does.
 *
 *      old master   grant X ─────┬─── release X, grant Y, release Y …  ─┐
 *                       promotion│                                      │ the clients come
 *      new master   grant X ─────┴─── X holds, and nobody has it  ──────┴─▶ release X again ──▶ the next waiter
 *
 * So on each new connection, the client asks the server which of these holds it has, 200 in one call that writes
 * nothing, and releases only those. If the connection leads to the same server as before, there are none.
 *
 * - I5: a hold's id is used for one call only. So a hold that was released in this client is never its hold again, and
 *   to release it late or twice ends no other hold. That is true of a hold that too few replicas have, too: its call asks
 *   again with a new id.
 * - I4: a waiter that the old master served may still be in the queue of the new one, and is granted the lock there. Its
 *   client receives the message of that grant, has no such waiter, and gives the grant back (session.ts).
 * - Memory: a ring of `MOST` releases. A release writes its place in the ring, and needs no object and no timer.
 *
 * A grant that only the old master knows cannot be saved: its holder learns on the new connection that it is lost.
 */
import type { Clock } from '../clock.ts'
import type { HoldName, Kind } from '../kind.ts'

/**
 * For how many ms a release is remembered. The sentinels make a former master a replica within about 8 s. Until then, a
 * client that does not listen to them may still be answered there.
 */
const SPAN = 10_000
/** How many releases are remembered at most. Each takes about 150 bytes, so a client keeps less than 1 MB. */
const MOST = 5_000

export class RecentReleases {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #keys: string[] = []
  readonly #ids: string[] = []
  /** The last token that this client issued in hand-offs; 0: none. Negative, and smaller by one: with `minHold`. */
  readonly #used: number[] = []
  readonly #at: number[] = []
  #next = 0

  constructor(kind: Kind, clock: Clock) {
    this.#kind = kind
    this.#clock = clock
  }

  /** Redis has released a hold. */
  add({ key, id, minHold }: HoldName, used = 0, now = this.#clock.now()): void {
    const next = this.#next
    this.#keys[next] = key
    this.#ids[next] = id
    this.#used[next] = minHold ? -1 - used : used
    this.#at[next] = now
    this.#next = (next + 1) % MOST
  }

  /**
   * Calls `release` for each hold of these keys that Redis has although it was released. If Redis does not answer, the
   * next connection leads to another call of this method.
   */
  async sendAgain(concerns: (key: string) => boolean, release: (name: HoldName, used?: number) => void): Promise<void> {
    const since = this.#clock.now() - SPAN
    const used = new Map<HoldName, number>()
    const places = new Map<string, HoldName[]>()
    for (const [i, key] of this.#keys.entries()) {
      if (this.#at[i]! < since || !concerns(key)) continue
      const place = this.#kind.placeOf(key)
      const number = this.#used[i]!
      const name = { key, id: this.#ids[i]!, minHold: number < 0 ? 1 : undefined }
      used.set(name, number < 0 ? -1 - number : number)
      const some = places.get(place)
      if (some) some.push(name)
      else places.set(place, [name])
    }
    const asking = [...places.values()].map(async some => {
      const left = await this.#kind.remaining?.(some)
      for (const name of left ?? []) release(name, used.get(name) || undefined)
    })
    await Promise.allSettled(asking)
  }
}

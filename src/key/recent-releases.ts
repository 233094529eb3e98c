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
 * - Memory: two lists, the older of which is forgotten when the newer one is `SPAN` old or has `MOST` entries. A release
 *   costs an entry in a list, and no timer.
 *
 * A grant that only the old master knows cannot be saved: its holder learns on the new connection that it is lost.
 */
import type { Clock } from '../clock.ts'
import type { HoldName, Kind } from '../kind.ts'

/**
 * After how many ms the lists change. The sentinels make a former master a replica within about 8 s. Until then, a
 * client that does not listen to them may still be answered there.
 */
const SPAN = 10_000
/** How many releases a list has at most. Each takes about 150 bytes, so a client keeps less than 1 MB in all. */
const MOST = 2_500

interface Ended extends HoldName {
  /** The last token that this client issued in hand-offs. */
  readonly used?: number | undefined
}

export class RecentReleases {
  readonly #kind: Kind
  readonly #clock: Clock
  #older: Ended[] = []
  #newer: Ended[] = []
  #begun = 0

  constructor(kind: Kind, clock: Clock) {
    this.#kind = kind
    this.#clock = clock
  }

  /** Called when Redis has released a hold. */
  add(name: HoldName, used?: number, now = this.#clock.now()): void {
    if (this.#newer.length >= MOST || now - this.#begun >= SPAN) this.#age(now)
    this.#newer.push(used === undefined ? name : { ...name, used })
  }

  /**
   * Calls `release` for each hold of these keys that Redis has although it was released. If Redis does not answer, the
   * next connection leads to another call of this method.
   */
  async sendAgain(concerns: (key: string) => boolean, release: (name: HoldName, used?: number) => void): Promise<void> {
    this.#age(this.#clock.now())
    const places = new Map<string, Map<string, Ended>>()
    for (const ended of [...this.#older, ...this.#newer]) {
      const { key, id } = ended
      if (!concerns(key)) continue
      const place = this.#kind.placeOf(key)
      places.set(place, (places.get(place) ?? new Map()).set(id, ended))
    }
    const asking = [...places.values()].map(async some => {
      const left = await this.#kind.remaining?.([...some.values()])
      for (const name of left ?? []) release(name, some.get(name.id)?.used)
    })
    await Promise.allSettled(asking)
  }

  #age(now: number): void {
    if (this.#newer.length < MOST && now - this.#begun < SPAN) return
    this.#older = now - this.#begun < 2 * SPAN ? this.#newer : []
    this.#newer = []
    this.#begun = now
  }
}

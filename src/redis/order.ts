/**
 * Keeps the order of one connection's requests about one lock.
 *
 * Requests reach the server in the order in which they are sent, and so do their answers. But if the server refuses a
 * request because it does not know the script (NOSCRIPT), or cannot run it now (BUSY), the request is sent again, and
 * runs behind requests that were made after it. For example, a client releases a lock, and then tries to take it. If the
 * server knows only the script of the attempt, the attempt is refused because of the client's own hold.
 *
 * So each request that has run before an earlier request about the same lock is sent again behind it, and only its last
 * answer counts. This does no harm, because a script that runs twice changes only what its first run has missed. But it
 * would do harm after the request that ends what the first run began: the second run of an attempt, behind the release,
 * would queue a waiter that nobody waits for (I4). So a new request about that lock is not sent before these are
 * answered:
 *
 *      refused ──▶ attempt (runs) ──▶ refused one, again ──▶ attempt, again ──▶ release
 */

/** A request that has been sent. */
export interface Sent {
  readonly request: { readonly key?: string }
  /** The place of the request in the order of all requests: the number of its first sending. */
  place: number
  /** The number of its last sending; Infinity: it was refused, and is not sent again yet. */
  turn: number
}

export class Order {
  #sendings = 0
  /** By their keys, the requests that were refused, and have no answer yet. Nearly always empty. Written only here. */
  readonly behind = new Map<string, Set<Sent>>()

  /** Called before a request is sent. Returns false if it must not be sent yet. */
  admits(request: Sent): boolean {
    if (request.place === 0 && this.behind.size > 0 && this.behind.has(request.request.key ?? '')) return false
    request.turn = ++this.#sendings
    request.place ||= request.turn
    return true
  }

  /** Called when a request was refused and will be sent again. */
  refused(request: Sent): void {
    request.turn = Number.POSITIVE_INFINITY
    const { key } = request.request
    if (key === undefined) return
    const others = this.behind.get(key)
    if (others) others.add(request)
    else this.behind.set(key, new Set([request]))
  }

  /**
   * Called when a request is answered or given up. Returns the turn of an earlier request that runs only after it; 0:
   * there is none.
   */
  settled(request: Sent): number {
    const { key = '' } = request.request
    const behind = this.behind.get(key)
    if (!behind) return 0
    behind.delete(request)
    if (behind.size === 0) this.behind.delete(key)
    return Math.max(0, ...[...behind].filter(({ place }) => place < request.place).map(({ turn }) => turn))
  }

  /** Called when the connection is lost: all requests that are not answered will be sent again, in their order. */
  clear(): void {
    this.behind.clear()
  }
}

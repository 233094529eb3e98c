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
 *
 * A busy server refuses every request, and there may be thousands about one lock. So no answer looks at all of them.
 */
import { Heap, type Item } from '../heap.ts'

/** A request that has been sent. In the heap, it is due at its place. */
export interface Sent extends Item {
  readonly request: { readonly key?: string }
  /** The place of the request in the order of all requests: the number of its first sending; 0: it was not sent yet. */
  place: number
  /** Whether it was refused, and is not sent again yet. */
  waits: boolean
}

/** The requests about one lock, if one of them was refused and has no answer yet. */
interface Line<T extends Sent> {
  /** The requests that were refused, or that ran before one of these. */
  readonly behind: Heap<T>
  /** Newer requests, which must not be sent yet. */
  readonly held: Set<T>
}

const none: ReadonlySet<never> = new Set()

export class Order<T extends Sent> {
  #places = 0
  /** By the keys of the requests. Nearly always empty. */
  readonly #lines = new Map<string, Line<T>>()

  /** Returns whether a request may be sent now. If not, `settled` returns it later. */
  admits(request: T): boolean {
    if (request.place === 0) {
      const line = this.#lineOf(request)
      if (line) {
        line.held.add(request)
        return false
      }
      request.place = ++this.#places
    }
    request.waits = false
    return true
  }

  /** A request was refused, or ran too early, and will be sent again. */
  refused(request: T): void {
    request.waits = true
    const { key } = request.request
    if (key === undefined) return
    let line = this.#lines.get(key)
    if (!line) {
      line = { behind: new Heap(), held: new Set() }
      this.#lines.set(key, line)
    }
    line.behind.set(request, request.place)
  }

  /** Returns an earlier request that has no answer yet, and so runs only after this one, which has run. */
  earlier(request: T): T | undefined {
    const first = this.#lineOf(request)?.behind.first
    return first && first.place < request.place ? first : undefined
  }

  /** A request has its final answer, or is given up. Returns the requests that may be sent now. */
  settled(request: T): ReadonlySet<T> {
    const line = this.#lineOf(request)
    if (!line) return none
    line.behind.delete(request)
    line.held.delete(request)
    if (line.behind.first) return none
    this.#lines.delete(request.request.key as string)
    return line.held
  }

  /** The connection is lost: all requests that are not answered will be sent again, in their order. */
  clear(): void {
    for (const { behind } of this.#lines.values()) behind.clear()
    this.#lines.clear()
  }

  #lineOf({ request }: T): Line<T> | undefined {
    return this.#lines.size > 0 ? this.#lines.get(request.key ?? '') : undefined
  }
}

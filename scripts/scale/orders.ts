/** The orders to the process that runs the clients, and its answers. */

export interface Orders {
  /** Connects `clients` clients to the server with this URL, or to a cluster. */
  open(order: { url: string; cluster: boolean; clients: number }): void
  /** Takes `count` locks with the keys `<prefix> 0` and so on; the clients take turns. */
  hold(order: { prefix: string; count: number }): void
  /** Takes the lock of one key `count` times, with the same owner. */
  reenter(order: { prefix: string; count: number }): void
  releaseAll(order: object): void
  /** Parks `count` waiters, spread over `keys` keys. Unfair waiters never become fair. */
  park(order: { prefix: string; count: number; keys: number; fair: boolean }): void
  /** Locks and releases `count` times, with `callers` concurrent callers, on `keys` keys in turn. */
  cycle(order: { prefix: string; count: number; callers: number; keys: number; once: boolean }): void
  /** Returns the CPU for one `stats()`, in µs. */
  stats(order: object): number
  /** Closes all clients. Returns how long that took, in ms. */
  close(order: object): number
  /** Returns the CPU used so far, in µs. */
  cpu(order: object): number
  /** Returns the size of the heap, with memory kept outside of it, after a garbage collection. */
  memory(order: object): number
  /**
   * Returns the CPU of the longest turn of the event loop since the previous order of this kind, in ms. The first such
   * order starts the measurement.
   */
  longestTurn(order: object): number
  /** Returns the number of holds that were lost. */
  lost(order: object): number
}

export type Op = keyof Orders
export type Order<O extends Op = Op> = { readonly op: O } & Parameters<Orders[O]>[0]
export type Reply = { readonly answer: number | undefined } | { readonly error: string }

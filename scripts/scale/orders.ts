/** The orders that `crew.ts` can send to a process of clients. Each method is an order, and returns the answer. */

export interface Orders {
  /** Connects `clients` clients to the server or cluster at this URL. */
  open(order: { url: string; cluster: boolean; clients: number }): void
  /** Takes `count` locks with the keys `<prefix> 0` and so on; the clients take turns. */
  hold(order: { prefix: string; count: number }): void
  /** Takes the lock of one key `count` times, with the same owner. */
  reenter(order: { prefix: string; count: number }): void
  releaseAll(order: object): void
  /** Parks `count` waiters, spread over `keys` keys. If `fair` is false, they stay unfair however long they wait. */
  park(order: { prefix: string; count: number; keys: number; fair: boolean }): void
  /** Locks and releases `count` times, with `callers` concurrent callers, on `keys` keys in turn. */
  cycle(order: { prefix: string; count: number; callers: number; keys: number; once: boolean }): void
  /** Returns the CPU for one `stats()`, in µs. */
  stats(order: object): number
  /** Closes all clients. Returns how long that took, in ms. */
  close(order: object): number
  /** Returns the CPU used so far, in µs. */
  cpu(order: object): number
  /** Returns the memory of the heap and of buffers outside of the heap, in bytes, after a garbage collection. */
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

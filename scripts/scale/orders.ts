/** What the process that has the clients is asked for, and what it answers. */

export interface Orders {
  /** Connects so many clients: to the server of the URL, or to a cluster. */
  open(order: { url: string; cluster: boolean; clients: number }): void
  /** Takes so many locks, of keys `<prefix> 0` and so on; the clients take turns. */
  hold(order: { prefix: string; count: number }): void
  /** Takes the lock of one key so often, all by one owner. */
  reenter(order: { prefix: string; count: number }): void
  releaseAll(order: object): void
  /** Parks so many waiters, at so many keys by turns. Unfair ones stay so. */
  park(order: { prefix: string; count: number; keys: number; fair: boolean }): void
  /** Lock and release, so often, by so many callers at a time, of so many keys by turns. */
  cycle(order: { prefix: string; count: number; callers: number; keys: number; once: boolean }): void
  /** µs of CPU of one `stats()`. */
  stats(order: object): number
  /** Closes all clients; ms. */
  close(order: object): number
  /** CPU so far, µs. */
  cpu(order: object): number
  /** Heap and what is kept beside it, after a collection. */
  memory(order: object): number
  /** CPU of the longest turn of the event loop since this was last asked, ms; from the first question on it is watched. */
  longestTurn(order: object): number
  /** Holds that were lost. */
  lost(order: object): number
}

export type Op = keyof Orders
export type Order<O extends Op = Op> = { readonly op: O } & Parameters<Orders[O]>[0]
export type Reply = { readonly answer: number | undefined } | { readonly error: string }

/**
 * Decides when requests are written to the socket. A write is a system call. If the server is on the same machine, the
 * system call costs more than all computation for a request. So if there are many requests in one turn of the event
 * loop, they share a write.
 *
 *      asked in one turn   1 ──▶ at once   2 ──▶ at once   3  4  5 … ──▶ together, when the turn is over
 *
 * In a cluster, there is one write for each server. The first requests are written at once: perhaps no more requests
 * come in this turn, and a request may be a release for which another process waits.
 */
import type { Cluster, Redis } from 'ioredis'

/**
 * In each turn of the event loop, this many requests are written immediately. Further requests are written together
 * when the turn is over.
 */
const AT_ONCE = 2

export class Writes {
  readonly #redis: Redis | Cluster
  #inTurn = 0
  #heldBack: (() => void) | undefined

  constructor(redis: Redis | Cluster) {
    this.#redis = redis
  }

  /** Called before each request is written. */
  next(): void {
    this.#inTurn += 1
    if (this.#inTurn === 1) process.nextTick(this.#turnIsOver)
    else if (this.#inTurn === AT_ONCE + 1) this.#heldBack = this.#holdBack()
  }

  /** Called before requests that belong together: they share a write, with what else is asked in this turn. */
  together(): void {
    if (this.#inTurn === 0) process.nextTick(this.#turnIsOver)
    this.#inTurn = Math.max(this.#inTurn, AT_ONCE)
  }

  /** This function is made only once. A new function in each turn of the event loop would cost time. */
  readonly #turnIsOver = () => {
    this.#inTurn = 0
    this.#heldBack?.()
    this.#heldBack = undefined
  }

  /** Blocks writes until the returned function is called. */
  #holdBack(): () => void {
    const servers = 'nodes' in this.#redis ? this.#redis.nodes('master') : [this.#redis]
    const streams = servers.map(({ stream }) => stream)
    for (const stream of streams) stream?.cork()
    return () => {
      for (const stream of streams) stream?.uncork()
    }
  }
}

/**
 * When requests leave. A write is a system call, and on the way to a server on the same machine it is dearer than all that
 * is computed for a request: where thousands are asked in one turn of the event loop, they leave in one write.
 *
 *      asked in one turn   1 ──▶ at once   2 ──▶ at once   3  4  5 … ──▶ together, when the turn is over
 *
 * In a cluster they leave in one write for each server. The first ones do not wait for others that may not come: a release
 * that another process waits for is among few.
 */
import type { Cluster, Redis } from 'ioredis'

/** Requests of one turn that leave at once. */
const AT_ONCE = 2

export class Writes {
  readonly #redis: Redis | Cluster
  #inTurn = 0
  #heldBack: (() => void) | undefined

  constructor(redis: Redis | Cluster) {
    this.#redis = redis
  }

  /** One more request is about to be written. */
  next(): void {
    this.#inTurn += 1
    if (this.#inTurn === 1) process.nextTick(this.#turnIsOver)
    else if (this.#inTurn === AT_ONCE + 1) this.#heldBack = this.#holdBack()
  }

  /** Made once: every turn that asks anything needs it. */
  readonly #turnIsOver = () => {
    this.#inTurn = 0
    this.#heldBack?.()
    this.#heldBack = undefined
  }

  /** Nothing is written any more until what it returns is called. */
  #holdBack(): () => void {
    const servers = 'nodes' in this.#redis ? this.#redis.nodes('master') : [this.#redis]
    const streams = servers.map(({ stream }) => stream)
    for (const stream of streams) stream?.cork()
    return () => {
      for (const stream of streams) stream?.uncork()
    }
  }
}

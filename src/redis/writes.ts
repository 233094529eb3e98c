/**
 * Decides when requests are written to the socket. A write is a system call. If the server is on the same machine, the
 * system call costs more than all computation for a request. So if there are many requests in one turn of the event
 * loop, they share a write.
 *
 *      asked in one turn   1 ──▶ at once   2 ──▶ at once   3  4  5 … ──▶ together, when the turn is over
 *
 * In a cluster, there is one write for each server. The first requests are written at once: perhaps no more requests
 * come in this turn, and a request may be a release for which another process waits.
 *
 * Texts are joined at the socket, where each command passes, whoever sends it. If some of them were joined before, they
 * would overtake others, or be overtaken. Redis answers in the order in which commands arrive, and ioredis expects the
 * answers in the order in which it has written. So a reply would go to the wrong request, and two callers would hold one
 * lock.
 */
import type { Cluster, Redis } from 'ioredis'

/**
 * In each turn of the event loop, this many requests are written immediately. Further requests are written together
 * when the turn is over.
 */
const AT_ONCE = 2

type Stream = Pick<NodeJS.WritableStream, 'write' | 'end'>

export class Writes {
  readonly #redis: Redis | Cluster
  #inTurn = 0
  #heldBack: (() => void)[] = []

  constructor(redis: Redis | Cluster) {
    this.#redis = redis
  }

  /** Comes before each request. */
  next(): void {
    this.#inTurn += 1
    if (this.#inTurn === 1) process.nextTick(this.#turnIsOver)
    else if (this.#inTurn === AT_ONCE + 1) this.#holdBack()
  }

  /** The next requests belong together: they share a write, with what else is asked in this turn. */
  together(): void {
    if (this.#inTurn === 0) process.nextTick(this.#turnIsOver)
    this.#inTurn = Math.max(this.#inTurn, AT_ONCE)
  }

  /** This function is made only once. A new function in each turn of the event loop would cost time. */
  readonly #turnIsOver = () => {
    this.#inTurn = 0
    for (const write of this.#heldBack.splice(0)) write()
  }

  #holdBack(): void {
    const servers = 'nodes' in this.#redis ? this.#redis.nodes('master') : [this.#redis]
    for (const { stream } of servers) if (stream) this.#heldBack.push(joined(stream))
  }
}

/** Joins what is written to the socket from now on. The returned function writes it, and ends that. */
function joined(stream: Stream): () => void {
  let text = ''
  const write = () => {
    // Without its own property, the socket has the method of its class again.
    Object.assign(stream, { write: undefined, end: undefined })
    delete (stream as Partial<Stream>).write
    delete (stream as Partial<Stream>).end
    if (text) stream.write(text)
    text = ''
  }
  const first =
    (method: 'write' | 'end') =>
    (...args: Parameters<Stream['write']>) => {
      const [chunk, ...more] = args
      if (method === 'write' && typeof chunk === 'string' && more.length === 0) {
        text += chunk
        return true
      }
      write()
      return stream[method](...args)
    }
  Object.assign(stream, { write: first('write'), end: first('end') })
  return write
}

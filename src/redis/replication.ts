/**
 * Runs scripts whose effect counts only when replicas have it: each script is followed by WAIT.
 *
 * WAIT waits for all earlier writes of the server, also for those of other clients. It blocks its connection until the
 * replicas have answered. So WAIT has a connection of its own, and delays no other command. The script before WAIT
 * checks whether the hold still exists. The script's answer proves that this connection leads to the server with the
 * hold; during a failover, another server might answer WAIT. Requests that arrive during one WAIT share the next WAIT.
 */
import type { Cluster, Redis } from 'ioredis'
import pTimeout from 'p-timeout'
import { LockConnectionError } from '../errors.ts'
import type { Replicas } from '../options.ts'
import { type Outcome, settle } from '../outcome.ts'
import type { Connection } from './connection.ts'
import { isReply } from './refusals.ts'
import type { Executor, ScriptRequest } from './scripts.ts'
import { withoutArguments } from './without-arguments.ts'

interface Unconfirmed {
  readonly request: ScriptRequest<unknown>
  resolve(outcome: unknown): void
  reject(error: unknown): void
}

type Result = [error: Error | null, reply: unknown]

export class Replication implements Executor {
  readonly #connection: Connection
  readonly #replicas: Readonly<Required<Replicas>>
  readonly #outageTimeout: number
  readonly #placeOf: (lock: string) => string
  /**
   * A round is a batch of requests for one place (`placeOf`), followed by one WAIT. For each place where a round is
   * under way, this map has the requests of the place's next round.
   */
  readonly #next = new Map<string, Unconfirmed[]>()

  /** `placeOf` returns the name of the place where a lock is stored. All locks of one place are on the same server. */
  constructor(
    connection: Connection,
    replicas: Readonly<Required<Replicas>>,
    placeOf: (lock: string) => string,
    outageTimeout: number,
  ) {
    this.#outageTimeout = outageTimeout
    this.#connection = connection
    this.#replicas = replicas
    this.#placeOf = placeOf
  }

  post<T>(request: ScriptRequest<T>, to: Outcome<T>): void {
    const asked = new Promise<unknown>((resolve, reject) => this.#ask({ request, resolve, reject })) as Promise<T>
    // A request may have to wait for earlier rounds before it is sent. This time limit includes that wait.
    const limited = pTimeout(asked, {
      milliseconds: this.#outageTimeout,
      message: new LockConnectionError(`Redis did not answer for ${this.#outageTimeout} ms`),
    })
    settle(limited, to)
  }

  #ask(asked: Unconfirmed): void {
    const place = this.#placeOf(asked.request.key)
    const next = this.#next.get(place)
    if (next) next.push(asked)
    else {
      this.#next.set(place, [])
      this.#round(place, [asked])
    }
  }

  async #round(place: string, batch: readonly Unconfirmed[]): Promise<void> {
    try {
      await this.#confirm(batch)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    const next = this.#next.get(place) ?? []
    if (next.length === 0) return void this.#next.delete(place)
    this.#next.set(place, [])
    this.#round(place, next)
  }

  async #confirm(batch: readonly Unconfirmed[]): Promise<void> {
    const { reply, sent, repeated } = await this.#connection.ask({
      send: redis => this.#send(redis, batch),
      read: ({ reply, sent, repeated }) => ({ reply: reply as Result[], sent, repeated }),
    })
    const [refused, counted] = reply[batch.length] as Result
    const missing = refused
      ? new LockConnectionError('Redis refused to wait for its replicas', withoutArguments(refused))
      : this.#missing(countOf(counted))
    for (const [i, { request, resolve, reject }] of batch.entries()) {
      const [error, answer] = reply[i] as Result
      if (error && request.rephrase(error)) this.#ask(batch[i] as Unconfirmed)
      else if (error) reject(request.explain(new LockConnectionError('Redis refused', withoutArguments(error))))
      else if (missing) reject(missing)
      else resolve(request.read({ reply: answer, sent, repeated }))
    }
  }

  /**
   * Runs the batch, and then WAIT. If the connection fails, the whole batch fails. If the server refuses a request,
   * only that request fails.
   */
  async #send(redis: Redis | Cluster, batch: readonly Unconfirmed[]): Promise<Result[]> {
    const { min, timeout, fsync } = this.#replicas
    const pipeline = redis.pipeline()
    for (const { request } of batch) request.queue(pipeline)
    if (fsync) pipeline.call('waitaof', 0, min, timeout)
    else pipeline.wait(min, timeout)
    const results = (await pipeline.exec()) ?? []
    for (const [i, [error]] of results.entries()) {
      if (!error || (isReply(error) && !this.#connection.passes(error))) continue
      batch[i]?.request.rephrase(error)
      // For a pipeline, ioredis follows MOVED and updates its slot table only if all commands get the same answer. Here
      // they do not: WAIT has no key, so it never gets MOVED. So this code updates the table.
      if ('nodes' in redis && isReply(error)) redis.refreshSlotsCache(() => {})
      throw error
    }
    return results as Result[]
  }

  #missing(count: number): LockConnectionError | undefined {
    const { min, timeout } = this.#replicas
    if (count >= min) return undefined
    const cause = new Error(`${count} of ${min} required replicas confirmed the grant within ${timeout} ms`)
    return new LockConnectionError('the lock was not replicated', cause)
  }
}

/**
 * Returns the number of replicas that have confirmed. This is the reply of WAIT. In the reply of WAITAOF it is the
 * second number; the first one is for the server itself.
 */
function countOf(counted: unknown): number {
  return Number(Array.isArray(counted) ? counted[1] : counted)
}

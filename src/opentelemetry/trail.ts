/**
 * Remembers across processes which span belonged to the last holder of a lock. Each instrumented holder stores the id
 * of its span in Redis, and receives the id that the previous holder stored. One command does both, so each holder
 * finds exactly its predecessor.
 *
 *   <prefix>-trace:{key}   "<fencing token> <traceparent>", at most 80 bytes, for ten minutes
 *
 * The key does not begin with `<prefix>:`, because a key that does may be the key of a lock (redis/keys.ts), and SET
 * would overwrite that lock. The key has the lock's hash tag, so in a cluster both have the same slot.
 *
 * No call waits for the command. If the command fails, if its reply is late, or if the reply cannot be read, only the
 * link between two spans is missing.
 */
import { diag, isSpanContextValid, type Link, type SpanContext } from '@opentelemetry/api'
import type { Cluster, Redis } from 'ioredis'
import pTimeout from 'p-timeout'
import { Keys, Namespace } from '../redis/keys.ts'
import { names } from './names.ts'

/** How long Redis keeps a span's id, in ms. If a hold lasts longer, the next hold gets no link. */
const KEPT = 600_000

/**
 * How long to wait for Redis's answer, in ms. If the hold ends before the answer arrives, its span stays open until the
 * answer arrives or this time is over.
 */
const PATIENCE = 1_000

/**
 * The largest number of commands under way at a time. This limits the memory that they take if Redis does not answer.
 */
const MOST = 1_000

const left = /^(\d{1,16}) 00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/

export class Trail {
  readonly #redis: Redis | Cluster
  readonly #keys: Keys
  #underWay = 0
  #complained = false
  /** Whether the server is older than 6.2. */
  #old = false

  constructor(redis: Redis | Cluster, prefix: string) {
    this.#redis = redis
    this.#keys = new Keys(new Namespace(`${prefix}-trace:`, false), { name: '', suffixes: ['', ':q', ':d'], least: 1 })
  }

  /**
   * Stores the span's id, and calls `found` with a link to the previous holder's span, if there is one. Never rejects.
   */
  async follow(key: string, token: number, span: SpanContext, found: (link: Link) => void): Promise<void> {
    if (!isSpanContextValid(span) || this.#underWay >= MOST) return
    this.#underWay += 1
    try {
      const name = this.#keys.of(key).lock
      const asked = this.#swap(name, `${token} ${traceparent(span)}`).finally(() => {
        this.#underWay -= 1
      })
      const link = linkTo(await pTimeout(asked, { milliseconds: PATIENCE }), token)
      if (link) found(link)
    } catch (error) {
      if (!this.#complained) diag.warn('redis-baton: the trace context of a lock could not be stored in Redis', error)
      this.#complained = true
    }
  }

  async #swap(name: string, value: string): Promise<unknown> {
    if (!this.#old) {
      try {
        return await this.#redis.set(name, value, 'PX', KEPT, 'GET')
      } catch (error) {
        if (!/syntax error/.test(`${error}`)) throw error
        this.#old = true
      }
    }
    const replies = await this.#redis.multi().getset(name, value).pexpire(name, KEPT).exec()
    return replies?.[0]?.[1]
  }
}

function traceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

/**
 * Returns a link to the stored span, if the fencing token that is stored with the span is smaller than `token`. The
 * stored value is checked, because any program may have written it.
 */
function linkTo(value: unknown, token: number): Link | undefined {
  const [, earlier, traceId, spanId, flags] = (typeof value === 'string' && left.exec(value)) || []
  if (!traceId || !spanId || !flags || Number(earlier) >= token) return undefined
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(context) ? { context, attributes: { [names.token]: Number(earlier) } } : undefined
}

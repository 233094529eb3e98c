/**
 * Who held a lock last, across processes: each instrumented holder leaves the name of its span in Redis, and takes the name
 * that its predecessor left. One command does both, so that of two holders each finds the one before it.
 *
 *   <prefix>-trace:{key}   "<fencing token> <traceparent>", at most 80 bytes, for ten minutes
 *
 * The key does not begin with `<prefix>:`, where every name may be the name of some lock (redis/keys.ts), and SET would
 * overwrite it. It has the lock's hash tag, and so its slot.
 *
 * Nobody waits for the command, and nothing depends on it: what fails, comes late, or cannot be read is a link less.
 */
import { diag, isSpanContextValid, type Link, type SpanContext } from '@opentelemetry/api'
import type { Cluster, Redis } from 'ioredis'
import pTimeout from 'p-timeout'
import { namesOf } from '../kinds/mutex/names.ts'
import { Keys, Namespace } from '../redis/keys.ts'
import { names } from './names.ts'

/** How long a name is kept, in ms. Who follows a longer hold gets no link. */
const KEPT = 600_000

/** How long an answer is waited for, in ms: that long at most the span of a shorter hold is held back. */
const PATIENCE = 1_000

/** More commands than this are not under way at a time: where Redis does not answer, nothing piles up. */
const MOST = 1_000

const left = /^(\d{1,16}) 00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/

export class Trail {
  readonly #redis: Redis | Cluster
  readonly #keys: Keys
  #underWay = 0
  #complained = false
  /** The server is older than 6.2. */
  #old = false

  constructor(redis: Redis | Cluster, prefix: string) {
    this.#redis = redis
    this.#keys = new Keys(new Namespace(`${prefix}-trace:`, false), { name: '', namesOf })
  }

  /** Leaves the span's name, and calls `found` with a link to the span of the holder before, if there is one. Never rejects. */
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
        if (!(error instanceof Error) || !/syntax error/.test(error.message)) throw error
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

/** A link to what was left by an earlier holder than the one with this token. Anybody may have written it. */
function linkTo(value: unknown, token: number): Link | undefined {
  const [, earlier, traceId, spanId, flags] = (typeof value === 'string' && left.exec(value)) || []
  if (!traceId || !spanId || !flags || Number(earlier) >= token) return undefined
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(context) ? { context, attributes: { [names.token]: Number(earlier) } } : undefined
}

/** The holds that have a span. They can be found by their lease, or by the data of an event. */
import type { Span } from '@opentelemetry/api'
import type { Lease } from '../key/lease.ts'
import type { Tally } from './meters.ts'

export interface HoldSpan {
  /** The data of the lease, not the lease itself: if the program forgets the lease, it must be garbage-collected. */
  readonly lease: Pick<Lease, 'id' | 'key' | 'fencingToken' | 'signal'>
  /** The kind of the lease's lock. It is needed because the same key means a different lock in each kind. */
  readonly kind: string
  readonly span: Span
  readonly tally: Tally
  /** When the lock was granted, in monotonic ms. */
  readonly since: number
  /** Whether the hold's release has been called, or its loss has been reported. */
  releasing: boolean
  /** Resolves when the span has its link to the previous holder's span, or will not get one. */
  linked?: Promise<void> | undefined
}

export class HoldSpans {
  /** Holds by token, because events contain no id. Only re-entrant holds share a token, so each list is short. */
  readonly #byToken = new Map<number, HoldSpan[]>()

  get all(): HoldSpan[] {
    return [...this.#byToken.values()].flat()
  }

  add(hold: HoldSpan): void {
    const { fencingToken } = hold.lease
    const siblings = this.#byToken.get(fencingToken)
    if (siblings) siblings.push(hold)
    else this.#byToken.set(fencingToken, [hold])
  }

  /** Returns false if the hold was removed before. */
  remove(hold: HoldSpan): boolean {
    const { fencingToken } = hold.lease
    const siblings = this.#byToken.get(fencingToken) ?? []
    const at = siblings.indexOf(hold)
    if (at < 0) return false
    if (siblings.length === 1) this.#byToken.delete(fencingToken)
    else siblings.splice(at, 1)
    return true
  }

  of({ fencingToken, id }: Lease): HoldSpan | undefined {
    return this.#byToken.get(fencingToken)?.find(({ lease }) => lease.id === id)
  }

  /**
   * Finds a lost hold. Re-entrant holds share a key and a token, but each has its own error object: the reason of its
   * lease's `signal`.
   */
  lost(key: string, fencingToken: number, error: Error): HoldSpan | undefined {
    const holds = this.#byToken.get(fencingToken)
    return holds?.find(({ lease }) => lease.key === key && lease.signal.reason === error)
  }
}

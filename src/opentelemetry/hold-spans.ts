/** The holds that have a span, found by their lease, or by what an event tells of them. */
import type { Span } from '@opentelemetry/api'
import type { Lease } from '../lease/lease.ts'
import type { Tally } from './meters.ts'

export interface HoldSpan {
  readonly lease: Lease
  /** That of its lock: the same key names another lock in each kind. */
  readonly kind: string
  readonly span: Span
  readonly tally: Tally
  /** When it was granted, ms. */
  readonly since: number
  /** Its release has been called. */
  releasing: boolean
  /** Resolves when the span has got its link, or will not get one. */
  linked?: Promise<void> | undefined
}

export class HoldSpans {
  /** By token, because events tell no more; holds of one token are re-entrant, so there are few. */
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

  /** False: it was not there any more. */
  remove({ lease }: HoldSpan): boolean {
    const siblings = this.#byToken.get(lease.fencingToken) ?? []
    const at = siblings.findIndex(hold => hold.lease === lease)
    if (at < 0) return false
    if (siblings.length === 1) this.#byToken.delete(lease.fencingToken)
    else siblings.splice(at, 1)
    return true
  }

  of(lease: Lease): HoldSpan | undefined {
    return this.#byToken.get(lease.fencingToken)?.find(hold => hold.lease === lease)
  }

  /** The hold that was lost with this error. */
  lost(key: string, fencingToken: number, error: Error): HoldSpan | undefined {
    const holds = this.#byToken.get(fencingToken)
    return holds?.find(({ lease }) => lease.key === key && lease.signal.reason === error)
  }
}

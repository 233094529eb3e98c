/** What processes believed to hold, on the one monotonic clock that all processes of a machine share. */
import type { Lease, LockClient } from '../../../src/index.ts'

/** ms, comparable between processes. */
export function machineNow(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export interface Span {
  readonly key: string
  readonly id: string
  readonly owner: string
  readonly token: number
  /** When it was granted. */
  readonly from: number
  /** Until when its holder believed in it: its local deadline, or the call of its release. */
  until: number
}

/** Notes every hold of a client, from its grant to its end. */
export class Holds {
  readonly spans: Span[] = []
  readonly #open = new Map<string, { lease: Lease; span: Span }>()

  constructor(locks: LockClient) {
    locks.on('renewed', ({ fencingToken }) => {
      for (const { lease, span } of this.#open.values()) if (lease.fencingToken === fencingToken) see(lease, span)
    })
  }

  note(lease: Lease): Lease {
    const { key, id, owner, fencingToken: token } = lease
    const span = { key, id, owner, token, from: machineNow(), until: 0 }
    see(lease, span)
    this.spans.push(span)
    this.#open.set(id, { lease, span })
    return lease
  }

  /** To be called right before the release. */
  end(lease: Lease): void {
    const entry = this.#open.get(lease.id)
    this.#open.delete(lease.id)
    if (entry && lease.held) entry.span.until = machineNow()
  }
}

function see(lease: Lease, span: Span): void {
  if (lease.held) span.until = Math.max(span.until, machineNow() + lease.remaining())
}

/** Pairs of holds that break I1 (two owners at once) or I2 (a token that is not larger), in words. */
export function violations(spans: readonly Span[]): string[] {
  const found: string[] = []
  const sorted = [...spans].sort((a, b) => a.from - b.from)
  const latest = new Map<string, Span>()
  for (const span of sorted) {
    const before = latest.get(span.key)
    if (before && before.owner !== span.owner) {
      if (before.until > span.from)
        found.push(`I1: ${span.owner} ${before.until - span.from} ms before ${before.owner} ended`)
      if (before.token >= span.token) found.push(`I2: ${span.token} after ${before.token}`)
    }
    if (!before || span.until >= before.until) latest.set(span.key, span)
  }
  return found
}

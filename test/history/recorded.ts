/** Records the calls of a lock client as events for the checker. */
import { type Lease, type Lock, type LockClient, type LockOptions, LockTimeoutError } from '../../src/index.ts'
import { type DecodedClaim, decodeClaim } from '../../src/kinds/claim.ts'
import { check } from './check.ts'
import type { Entry, EventOf, Fields, HistoryEvent, Kind } from './events.ts'
import { now } from './recorder.ts'
import type { Wants } from './wants.ts'

/** The destination of events: a file that processes share (recorder.ts), or the memory of one process. */
export interface Recording {
  record<K extends Kind>(kind: K, fields: Fields<K>, t?: number): void
}

export class Memory implements Recording {
  readonly events: HistoryEvent[] = []

  record<K extends Kind>(kind: K, fields: Fields<K>, t: number = now()): void {
    this.events.push({ t, kind, ...fields } as HistoryEvent)
  }
}

export class RecordedClient {
  readonly #worker: string
  readonly #locks: LockClient
  readonly #recording: Recording
  /** The live leases by token and key, because the client's event `renewed` contains only the token and the key. */
  readonly #leases = new Map<string, Set<Lease>>()
  #attempts = 0

  constructor(worker: string, locks: LockClient, recording: Recording) {
    this.#worker = worker
    this.#locks = locks
    this.#recording = recording
    locks.on('renewed', ({ key, fencingToken }) => {
      for (const lease of this.#leases.get(`${fencingToken} ${key}`) ?? []) this.#renewed(lease)
    })
  }

  get attempts(): number {
    return this.#attempts
  }

  /** Returns a new name for the next attempt. */
  attempt(): string {
    return `${this.#worker}.${++this.#attempts}`
  }

  /**
   * Requests a lock, and records the call. `other` is a lock of another kind, with the permits or the mode to request.
   * Without `other`, the call requests the mutex of the key.
   */
  async lock(key: string, options: LockOptions = {}, other?: { lock: Lock; wants: Wants }): Promise<Lease> {
    const attempt = this.attempt()
    const { fair, fairAfter, owner, signal, minHold } = options
    const mode = fair ? 'fair' : fairAfter === Number.POSITIVE_INFINITY ? 'unfair' : 'fairAfter'
    const named = {
      ...(owner !== undefined && { owner }),
      ...(other && { wants: other.wants }),
      ...(minHold && { minHold }),
    }
    this.#recording.record('request', { worker: this.#worker, attempt, key, mode, ...named })
    try {
      const granted = other ? other.lock.lock(options) : this.#locks.lock(key, options)
      return this.granted(await granted, attempt)
    } catch (error) {
      if (error instanceof LockTimeoutError) this.end(attempt, 'timeout')
      else if (signal?.aborted && error === signal.reason) this.end(attempt, 'aborted')
      else this.end(attempt, 'failed', String(error))
      throw error
    }
  }

  /**
   * Records the grant of a lease now, and records its renewals and its loss when they happen. `attempt` is the name of
   * the attempt in the recorded request. If no request was recorded, leave `attempt` out.
   */
  granted(lease: Lease, attempt = this.attempt()): Lease {
    const { key, id, owner, fencingToken: token, via, slots } = lease
    // Read the clock before the lease. If the process is stopped in between, the recorded deadline is too early, never
    // too late.
    const t = now()
    const deadline = t + lease.remaining()
    const worker = this.#worker
    const numbers = slots && { slots }
    this.#recording.record('grant', { worker, attempt, key, id, owner, token, via, deadline, ...numbers }, t)
    const lost = () => this.#recording.record('lost', { worker, id })
    if (lease.signal.aborted) lost()
    else lease.signal.addEventListener('abort', lost, { once: true })
    const name = `${token} ${key}`
    this.#leases.set(name, (this.#leases.get(name) ?? new Set()).add(lease))
    return lease
  }

  async release(lease: Lease): Promise<boolean> {
    const { id, key, fencingToken } = lease
    const worker = this.#worker
    const name = `${fencingToken} ${key}`
    const siblings = this.#leases.get(name)
    siblings?.delete(lease)
    if (siblings?.size === 0) this.#leases.delete(name)
    const t = now()
    const { held, lasts } = lease
    this.#recording.record('release', { worker, id, held, ...(lasts && !held && { doubt: true }) }, t)
    try {
      const result = await lease.release()
      this.#recording.record('released', { worker, id, result })
      return result
    } catch (error) {
      this.#recording.record('released', { worker, id, result: String(error) })
      throw error
    }
  }

  end(attempt: string, how: EventOf<'end'>['how'], error?: string): void {
    this.#recording.record('end', { worker: this.#worker, attempt, how, ...(error !== undefined && { error }) })
  }

  #renewed(lease: Lease): void {
    const t = now()
    const remaining = lease.remaining()
    if (remaining <= 0) return
    this.#recording.record('renewed', { worker: this.#worker, id: lease.id, deadline: t + remaining }, t)
  }
}

/**
 * Returns the entries of a queue that was read by ZRANGE with WITHSCORES. The client's label must be its worker's name.
 * `decode` is the decoder of the lock's kind.
 */
export function queueEntries(
  flat: readonly string[],
  decode: (text: string) => DecodedClaim | undefined = decodeClaim,
): Entry[] {
  const entries: Entry[] = []
  for (let i = 0; i < flat.length; i += 2) {
    const { id, owner, label: worker } = decode(flat[i]!)!
    entries.push([id, flat[i + 1]!, worker, owner])
  }
  return entries
}

/**
 * Returns the violations that the checker finds in a history. A fault excuses a violation only if the fault is in the
 * history.
 */
export function violationsIn(events: Iterable<HistoryEvent>): string[] {
  const terms = { seed: 0, waiterTtl: 10_000, longestLease: 120_000, outageTimeout: 15_000 }
  const run: HistoryEvent = { t: 0, kind: 'run', ...terms }
  return check([run, ...events]).violations.map(({ invariant, text }) => `${invariant}: ${text}`)
}

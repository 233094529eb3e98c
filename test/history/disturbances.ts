/**
 * The times in which waiters may have lost their places in a queue although the lock is correct. These are times of
 * faults that reach waiters, of stalled event loops, and of lost connections. A disturbance concerns the waiters of one
 * process, the waiters of one lock, or all waiters.
 *
 * Each disturbance lasts a little longer than its fault, until the next heartbeats have repaired the damage. Each live
 * waiter sends three heartbeats within one `waiterTtl`. So a disturbance ends one `waiterTtl` after its fault. A client
 * that was disconnected sends a heartbeat as soon as it is connected again, and the history has that moment. So the
 * disturbance by a lost connection ends one interval of heartbeats after that moment.
 *
 * For locks over a quorum, a fault of a minority of the servers is no disturbance. A process is disturbed only while at
 * least half of the servers have a fault or are cut off from it. A lost connection that a client reports is no excuse
 * in a quorum.
 */
import type { EventOf, HistoryEvent } from './events.ts'
import { atLeast, covered, merged, overlaps, type Span } from './spans.ts'

export class Disturbances {
  #ofAll: Span[] = []
  readonly #ofWorker = new Map<string, Span[]>()
  readonly #ofKey = new Map<string, Span[]>()
  /**
   * Times in which an event loop stood still, by process. The key undefined is for the orchestrator, the process that
   * starts all others and runs their proxies.
   */
  readonly #stalls = new Map<string | undefined, Span[]>()
  readonly #quorum: QuorumFaults

  constructor(events: readonly HistoryEvent[], { waiterTtl, servers }: EventOf<'run'>) {
    const never = Number.POSITIVE_INFINITY
    const heartbeat = waiterTtl / 3
    const faults = new Map<number, EventOf<'fault'>>()
    const offline = new Map<string, number>()
    this.#quorum = new QuorumFaults(servers ?? 0)
    for (const event of events) {
      if (event.kind === 'fault' && event.reach !== 'nothing') {
        if (event.phase === 'begin') faults.set(event.fault, event)
        else {
          const from = faults.get(event.fault)?.t ?? 0
          this.#add(event, from, event.t + waiterTtl)
          // A process that is killed as soon as it runs again cannot report that it stood still. So the fault itself
          // counts as a stall.
          if (event.name === 'freeze' || event.name === 'block') this.#stood(event.worker, { from, to: event.t })
          faults.delete(event.fault)
        }
      } else if (event.kind === 'stall') {
        this.#addTo(event.worker, event.from, event.t + waiterTtl)
        this.#stood(event.worker, { from: event.from, to: event.t })
      } else if (event.kind === 'taken' && event.key === undefined) {
        // Without `key`, the event `taken` concerns all locks, and their queues may be gone, too. With `key`, the queue
        // of the lock remains.
        this.#addTo(event.worker, event.from, event.t + waiterTtl)
      } else if (event.kind === 'died') this.#addTo(event.worker, event.t, never)
      else if (event.kind === 'link' && servers === undefined) {
        if (!event.up) offline.set(event.worker, event.t)
        else {
          this.#addTo(event.worker, offline.get(event.worker) ?? event.t, event.t + heartbeat)
          offline.delete(event.worker)
        }
      }
    }
    for (const fault of faults.values()) this.#add(fault, fault.t, never)
    for (const [worker, from] of offline) this.#addTo(worker, from, never)
    this.#ofAll = merged(this.#ofAll)
    for (const spans of [this.#ofWorker, this.#ofKey]) for (const [of, list] of spans) spans.set(of, merged(list))
    for (const [worker, list] of this.#stalls) this.#stalls.set(worker, merged(list))
  }

  /** Whether a disturbance between `from` and `to` may have affected this process's waiters for this lock. */
  touch(worker: string, key: string, from: number, to: number): boolean {
    const lists = [this.#ofAll, this.#ofWorker.get(worker), this.#ofKey.get(key), this.#quorum.withoutMajority(worker)]
    return lists.some(spans => spans && overlaps(spans, from, to))
  }

  /**
   * Returns how long the event loops of this process and of the orchestrator certainly stood still between `from` and
   * `to`, in ms. The orchestrator counts because its proxies connect the process to the server.
   */
  stalled(worker: string, from: number, to: number): number {
    return covered(this.#stalls.get(undefined) ?? [], from, to) + covered(this.#stalls.get(worker) ?? [], from, to)
  }

  #stood(worker: string | undefined, span: Span): void {
    const stalls = this.#stalls.get(worker)
    if (stalls) stalls.push(span)
    else this.#stalls.set(worker, [span])
  }

  #add({ reach, worker, key, servers }: EventOf<'fault'>, from: number, to: number): void {
    const whose = reach === 'worker' ? worker : undefined
    if (servers) this.#quorum.add(servers, whose, { from, to })
    else if (reach === 'key' && key !== undefined) append(this.#ofKey, key, { from, to })
    else this.#addTo(whose, from, to)
  }

  #addTo(worker: string | undefined, from: number, to: number): void {
    if (worker === undefined) this.#ofAll.push({ from, to })
    else append(this.#ofWorker, worker, { from, to })
  }
}

/**
 * Faults of single servers of a quorum. A fault affects all processes, or only the connection between one process and
 * the server.
 */
class QuorumFaults {
  readonly #servers: number
  readonly #faults: { readonly server: number; readonly worker: string | undefined; readonly span: Span }[] = []
  readonly #found = new Map<string, readonly Span[]>()

  constructor(servers: number) {
    this.#servers = servers
  }

  add(servers: readonly number[], worker: string | undefined, span: Span): void {
    for (const server of servers) this.#faults.push({ server, worker, span })
  }

  /** Returns the times in which at least half of the servers had a fault or were cut off from the process. */
  withoutMajority(worker: string): readonly Span[] {
    const found = this.#found.get(worker)
    if (found) return found
    const ofServer = new Map<number, Span[]>()
    for (const fault of this.#faults) {
      if ((fault.worker ?? worker) === worker) append(ofServer, fault.server, fault.span)
    }
    const spans = atLeast(Math.ceil(this.#servers / 2), ofServer.values())
    this.#found.set(worker, spans)
    return spans
  }
}

function append<K>(lists: Map<K, Span[]>, of: K, span: Span): void {
  const list = lists.get(of)
  if (list) list.push(span)
  else lists.set(of, [span])
}

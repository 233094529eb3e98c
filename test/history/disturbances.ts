/**
 * When waiters of a process, of a lock, or all of them may have lost their place in a queue through no fault of the lock:
 * the times of faults that reach waiters, of stalled event loops and of lost connections.
 *
 * Each lasts a little longer than the fault itself. What was missed is made up for by the next heartbeats: after
 * `waiterTtl` each live waiter has had three of them, so a place in the queue that is seen later than that stands by
 * itself again. A disconnected client says when it is back, and asks at once; a heartbeat is enough for that.
 */
import type { EventOf, HistoryEvent } from './events.ts'
import { lowerBound } from './lists.ts'

export interface Span {
  readonly from: number
  readonly to: number
}

export class Disturbances {
  #ofAll: Span[] = []
  readonly #ofWorker = new Map<string, Span[]>()
  readonly #ofKey = new Map<string, Span[]>()
  /** Of a process; of the orchestrator under undefined. */
  readonly #stalls = new Map<string | undefined, Span[]>()

  constructor(events: readonly HistoryEvent[], { waiterTtl }: EventOf<'run'>) {
    const never = Number.POSITIVE_INFINITY
    const heartbeat = waiterTtl / 3
    const faults = new Map<number, EventOf<'fault'>>()
    const offline = new Map<string, number>()
    for (const event of events) {
      if (event.kind === 'fault' && event.reach !== 'nothing') {
        if (event.phase === 'begin') faults.set(event.fault, event)
        else {
          const from = faults.get(event.fault)?.t ?? 0
          this.#add(event, from, event.t + waiterTtl)
          // A process that is killed as soon as it runs again cannot say that it stood still.
          if (event.name === 'freeze' || event.name === 'block') this.#stood(event.worker, { from, to: event.t })
          faults.delete(event.fault)
        }
      } else if (event.kind === 'stall') {
        this.#addTo(event.worker, event.from, event.t + waiterTtl)
        this.#stood(event.worker, { from: event.from, to: event.t })
      } else if (event.kind === 'taken' && event.key === undefined) {
        // The queues are lost too; where one lock is taken away, its queue stays.
        this.#addTo(event.worker, event.from, event.t + waiterTtl)
      } else if (event.kind === 'died') this.#addTo(event.worker, event.t, never)
      else if (event.kind === 'link' && !event.up) offline.set(event.worker, event.t)
      else if (event.kind === 'link') {
        this.#addTo(event.worker, offline.get(event.worker) ?? event.t, event.t + heartbeat)
        offline.delete(event.worker)
      }
    }
    for (const fault of faults.values()) this.#add(fault, fault.t, never)
    for (const [worker, from] of offline) this.#addTo(worker, from, never)
    this.#ofAll = merged(this.#ofAll)
    for (const spans of [this.#ofWorker, this.#ofKey]) for (const [of, list] of spans) spans.set(of, merged(list))
    for (const [worker, list] of this.#stalls) this.#stalls.set(worker, merged(list))
  }

  /** Whether anything may have reached the waiters of this process for this lock in this time. */
  touch(worker: string, key: string, from: number, to: number): boolean {
    const lists = [this.#ofAll, this.#ofWorker.get(worker) ?? [], this.#ofKey.get(key) ?? []]
    return lists.some(spans => overlaps(spans, from, to))
  }

  /** ms of this time in which the process, or the way from it to the server, surely stood still. */
  stalled(worker: string, from: number, to: number): number {
    return covered(this.#stalls.get(undefined) ?? [], from, to) + covered(this.#stalls.get(worker) ?? [], from, to)
  }

  #stood(worker: string | undefined, span: Span): void {
    const stalls = this.#stalls.get(worker)
    if (stalls) stalls.push(span)
    else this.#stalls.set(worker, [span])
  }

  #add({ reach, worker, key }: EventOf<'fault'>, from: number, to: number): void {
    if (reach === 'key' && key !== undefined) append(this.#ofKey, key, { from, to })
    else this.#addTo(reach === 'worker' ? worker : undefined, from, to)
  }

  #addTo(worker: string | undefined, from: number, to: number): void {
    if (worker === undefined) this.#ofAll.push({ from, to })
    else append(this.#ofWorker, worker, { from, to })
  }
}

function append(lists: Map<string, Span[]>, of: string, span: Span): void {
  const list = lists.get(of)
  if (list) list.push(span)
  else lists.set(of, [span])
}

function merged(spans: readonly Span[]): Span[] {
  const list: { from: number; to: number }[] = []
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    const last = list.at(-1)
    if (last && from <= last.to) last.to = Math.max(last.to, to)
    else list.push({ from, to })
  }
  return list
}

function overlaps(spans: readonly Span[], from: number, to: number): boolean {
  const first = spans[lowerBound(spans, from, span => span.to)]
  return first !== undefined && first.from <= to
}

function covered(spans: readonly Span[], from: number, to: number): number {
  let sum = 0
  for (let i = lowerBound(spans, from, span => span.to); i < spans.length; i++) {
    const { from: begin, to: end } = spans[i] as Span
    if (begin >= to) break
    sum += Math.min(end, to) - Math.max(begin, from)
  }
  return sum
}

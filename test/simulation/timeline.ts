/**
 * Virtual time: the events of one history in the order of their times, and the clocks of the processes in it.
 *
 * No real time passes between events: each event runs as soon as the event before it is over. An event may belong to a
 * process. The events of a dead process are dropped. The events of a frozen process are kept, and run one by one after
 * the thaw. Chance decides whether its timers run first or its sockets deliver their data first, because Node's event
 * loop may do either.
 */
import type { Clock, Timer } from '../../src/clock.ts'
import type { Random } from '../kit/random.ts'

export type Kind = 'timer' | 'input'

export interface Event {
  time: number
  order: number
  readonly kind: Kind
  readonly process: Process | undefined
  readonly run: () => void
  cancelled: boolean
}

export class Timeline {
  now = 0
  /** How many events have run. */
  count = 0
  readonly #heap: Event[] = []
  #order = 0

  get idle(): boolean {
    return this.#heap.length === 0
  }

  /**
   * Schedules an event. It belongs to `process`, if one is given. If `time` has already passed, the event is due now.
   */
  at(time: number, run: () => void, process?: Process, kind: Kind = 'input'): Event {
    const event = { time: Math.max(time, this.now), order: this.#order++, kind, process, run, cancelled: false }
    this.#push(event)
    return event
  }

  /** Removes and returns the next event, and sets `now` to its time. Returns undefined if there is no event. */
  next(): Event | undefined {
    for (let event = this.#pop(); event; event = this.#pop()) {
      if (event.cancelled || event.process?.dead) continue
      this.now = event.time
      if (event.process?.frozen) {
        event.process.deferred.push(event)
        continue
      }
      this.count += 1
      return event
    }
    return undefined
  }

  /** Schedules the events that were kept for a frozen process. */
  resume(events: readonly Event[]): void {
    for (const event of events) {
      event.time = this.now
      event.order = this.#order++
      this.#push(event)
    }
  }

  #push(event: Event): void {
    const heap = this.#heap
    let child = heap.length
    heap.push(event)
    while (child > 0) {
      const parent = (child - 1) >> 1
      if (!before(event, heap[parent]!)) break
      heap[child] = heap[parent]!
      child = parent
    }
    heap[child] = event
  }

  #pop(): Event | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (!last || heap.length === 0) return first
    let parent = 0
    for (;;) {
      let child = 2 * parent + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child += 1
      if (!before(heap[child]!, last)) break
      heap[parent] = heap[child]!
      parent = child
    }
    heap[parent] = last
    return first
  }
}

function before(a: Event, b: Event): boolean {
  return a.time < b.time || (a.time === b.time && a.order < b.order)
}

/** How late a timer may fire, ms. */
const LATE = 1

/** A process that runs, is frozen for a while, or is dead. Its clock is monotonic, and may be slightly fast or slow. */
export class Process implements Clock {
  readonly name: string
  dead = false
  frozen = false
  /** The virtual time at which the process last thawed. */
  thawedAt = Number.NEGATIVE_INFINITY
  /** How often the process was frozen, and for how many ms in total. */
  stops = 0
  stopped = 0
  readonly deferred: Event[] = []
  readonly #timeline: Timeline
  readonly #random: Random
  readonly #offset: number
  readonly #rate: number
  readonly #armed = new Set<Event>()
  #frozenAt = 0

  constructor(name: string, timeline: Timeline, random: Random) {
    this.name = name
    this.#timeline = timeline
    this.#random = random
    this.#offset = random.between(0, 10_000)
    // The clocks of a client and the server may differ by 0.1 % (src/clock.ts). Here, only the client's clock is
    // inexact.
    this.#rate = 1 + random.between(-0.0009, 0.0009)
  }

  now(): number {
    return this.#offset + this.#timeline.now * this.#rate
  }

  /** Timers fire late, by up to `LATE`. */
  after(delay: number, fire: () => void): Timer {
    const due = this.#timeline.now + Math.max(0, delay) / this.#rate + this.#random.between(0.01, LATE)
    const run = () => {
      this.#armed.delete(event)
      fire()
    }
    const event = this.#timeline.at(due, run, this, 'timer')
    this.#armed.add(event)
    return {
      cancel: () => {
        event.cancelled = true
        this.#armed.delete(event)
      },
    }
  }

  /** Timers that have neither fired nor been cancelled. */
  get armed(): number {
    return this.#armed.size
  }

  /**
   * Whether the process has run everything that was due. False while the process is frozen and at the moment of its
   * thaw.
   */
  get awake(): boolean {
    return !this.frozen && this.#timeline.now > this.thawedAt
  }

  /**
   * Like `awake`, but also false for the first `LATE` ms after a thaw. The events that run at the thaw may set timers,
   * and each timer may fire up to `LATE` ms late.
   */
  get settled(): boolean {
    return !this.frozen && this.#timeline.now > this.thawedAt + LATE
  }

  freeze(): void {
    if (!this.frozen) this.#frozenAt = this.#timeline.now
    this.frozen = true
  }

  thaw(): void {
    if (!this.frozen) return
    this.frozen = false
    this.thawedAt = this.#timeline.now
    this.stops += 1
    this.stopped += this.thawedAt - this.#frozenAt
    const events = this.deferred.splice(0)
    const timers = events.filter(({ kind }) => kind === 'timer')
    const input = events.filter(({ kind }) => kind === 'input')
    this.#timeline.resume(this.#random.chance(0.5) ? [...timers, ...input] : [...input, ...timers])
  }

  kill(): void {
    this.dead = true
  }
}

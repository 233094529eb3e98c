/** I6 and I4: every promise that a caller was given, until when it has to settle, and who waits for which lock. */
import type { SimulatedClient } from './client.ts'
import { isReadWrite, isShared, type LockState, liveHolds, takenOf, writes } from './lock-state.ts'
import { type Plan, WRITES } from './plan.ts'
import { mayEnter } from './reentries.ts'
import type { Server } from './server.ts'

/** Timers are late by up to 1 ms, and some ends are two timers away; a clock may run slow by 0.1 %. */
const LATE = 5

/** After a stall what has come meanwhile is read before anything is judged (src/clock.ts), ms. */
const GRACE = 50

interface Open {
  readonly what: string
  readonly client: SimulatedClient
  /** Virtual time. */
  readonly begun: number
  /** Virtual time by which it has to be settled, unless the process was stopped meanwhile. */
  due: number
  /** Virtual time by which its patience with Redis is over; time in which its process was stopped does not count. */
  readonly patient: number
  /** How often and how long its process had been stopped when it began. */
  readonly stops: number
  readonly stopped: number
  /** Its patience ends `outageTimeout` after Redis went out of reach. */
  readonly isLock: boolean
  /** The lock it waits for, by its key. */
  readonly waitsFor: string | undefined
  /** Of a semaphore: how many permits, and of how many. */
  readonly wants: string | undefined
  /** Its owner, if that has a name. */
  readonly owner: string | undefined
  /** How long it may go on after the process was stopped, ms. */
  readonly again: number
}

interface Terms {
  readonly limit?: number
  readonly patience?: number
  readonly waitsFor?: string | undefined
  readonly wants?: string | undefined
  readonly owner?: string | undefined
  readonly again?: number
}

const NEVER = Number.POSITIVE_INFINITY

export class Promises {
  readonly #plan: Plan
  readonly #failed: (invariant: string, what: string) => void
  readonly #open = new Set<Open>()
  /** Since when each lock is free although somebody waits. */
  readonly #idleSince = new Map<string, { readonly time: number; readonly mark: number }>()
  /** Since when each call waits for a lock that its owner holds. */
  readonly #outsideSince = new Map<Open, number>()

  constructor(plan: Plan, failed: (invariant: string, what: string) => void) {
    this.#plan = plan
    this.#failed = failed
  }

  /** Those that are not settled, but for the ones of dead processes. */
  get open(): string[] {
    for (const open of this.#open) if (open.client.process.dead) this.#open.delete(open)
    return [...this.#open].map(({ what, begun }) => `${what} since ${begun.toFixed(3)}`)
  }

  /** `limit`: ms until its caller's own end; `patience`: how long it rides out a Redis that does not answer; and `again`. */
  begin(
    what: string,
    client: SimulatedClient,
    now: number,
    { limit = NEVER, patience = NEVER, waitsFor, wants, owner, again = 0 }: Terms = {},
  ): Open {
    const { stops, stopped } = client.process
    const open = {
      what,
      client,
      begun: now,
      due: now + limit * 1.001 + LATE,
      patient: now + patience * 1.001 + LATE,
      stops,
      stopped,
      isLock: what.startsWith('lock'),
      waitsFor,
      wants,
      owner,
      again,
    }
    this.#open.add(open)
    return open
  }

  /** It has to settle within `ms` from now. */
  hurry(open: Open, now: number, ms: number): void {
    open.due = Math.min(open.due, now + ms + LATE)
  }

  settle(open: Open): void {
    this.#open.delete(open)
    this.#outsideSince.delete(open)
  }

  /** After each event, at its time. */
  look(now: number, server: Server): void {
    const outage = this.#plan.settings.outageTimeout * 1.001 + LATE
    for (const open of this.#open) {
      const { process, outOfReach } = open.client
      if (!process.awake || process.dead) continue
      const from = Math.max(open.begun, (open.isLock ? outOfReach : undefined) ?? Number.POSITIVE_INFINITY)
      const pause = process.stopped - open.stopped + (process.stops - open.stops) * (GRACE + LATE)
      const patient = Math.min(open.patient, from + outage) + pause
      const due = Math.max(Math.min(open.due, patient), process.thawedAt + open.again * 1.001 + LATE)
      if (now > due) {
        this.#failed(
          'I6',
          `${open.what} of ${process.name}, begun at ${open.begun.toFixed(3)}, was due at ${due.toFixed(3)}`,
        )
      }
    }
    if (now >= this.#plan.calm) this.#lookForProgress(now, server)
  }

  #lookForProgress(now: number, server: Server): void {
    for (const key of this.#plan.keys) {
      const waiting = [...this.#open].filter(({ waitsFor, client }) => waitsFor === key && client.open)
      const first = waiting[0]
      const state = first && server.lock(first.client.lockOf(key))
      if (!first || !state) {
        this.#idleSince.delete(key)
        continue
      }
      const held = liveHolds(state, server.now).length > 0
      const lock = first.client.lockOf(key)
      this.#lookForOutsiders(now, waiting, ({ owner, wants }) => {
        if (owner === undefined) return false
        if (isReadWrite(lock)) return mayEnter(state, owner, wants === WRITES, server.now)
        return held && state.holder?.claim.owner === owner
      })
      const shared = isShared(lock)
      if (shared ? !isEnabled(state, waiting, server.now, isReadWrite(lock)) : held) {
        this.#idleSince.delete(key)
        continue
      }
      // A release is told to whoever waits; a lease that lapses is not.
      const lapsed = shared ? state.holders.size > liveHolds(state, server.now).length : state.holder !== undefined
      const bound = lapsed ? this.#plan.bound : Math.min(this.#plan.bound, this.#plan.prompt)
      const longest = Math.min(...waiting.map(({ begun }) => begun))
      // Of a semaphore, each grant is progress, though there may be more to have.
      const mark = Math.max(0, ...[...state.holders.values()].map(({ token }) => token)) + state.holders.size
      const known = this.#idleSince.get(key)
      const since = Math.max(known?.mark === mark ? known.time : now, longest, this.#plan.calm)
      this.#idleSince.set(key, { time: since, mark })
      if (now - since > bound) {
        this.#failed(
          'I4',
          `${key} is free since ${since.toFixed(3)}, and ${first.what} of ${first.client.process.name} waits`,
        )
      }
    }
  }

  /** An owner with a name holds the lock, and its other calls have to enter as soon as its next holder would after a release. */
  #lookForOutsiders(now: number, waiting: readonly Open[], enters: (open: Open) => boolean): void {
    const bound = Math.min(this.#plan.bound, this.#plan.prompt)
    for (const open of waiting) {
      if (!enters(open)) {
        this.#outsideSince.delete(open)
        continue
      }
      const since = Math.max(this.#outsideSince.get(open) ?? now, this.#plan.calm)
      this.#outsideSince.set(open, since)
      if (now - since > bound) {
        const { what, client, owner } = open
        this.#failed(
          'I4',
          `${owner} holds since ${since.toFixed(3)}, and ${what} of ${client.process.name} by it waits`,
        )
      }
    }
  }
}

/**
 * Whether somebody has to be granted it: the head of the queue fits, or nobody is queued and each of those who wait does. Readers behind
 * a writer have to wait.
 */
function isEnabled(state: LockState, waiting: readonly Open[], now: number, readWrite: boolean): boolean {
  const taken = takenOf(state, now)
  const fits = (permits: number, of: number) => taken + permits <= of
  const live = state.queue.filter(({ liveUntil }) => liveUntil >= now)
  const [head] = live
  if (head && readWrite && taken > 0 && live.some(({ claim }) => writes(claim))) return false
  if (head) return fits(...head.claim.wants!)
  return waiting.every(({ wants }) => fits(...(wants!.split('/').map(Number) as [number, number])))
}

/**
 * What a history is made of. Every process of a run appends its own events to one JSON-lines file; `t` is ms of the
 * machine's monotonic clock, which all its processes share, so that times of different processes can be compared.
 *
 * Whoever records an event reads the clock so that the checker may rely on an order:
 *   grant      after `lock` has returned         release    before `release` is called
 *   request    before `lock` is called           released   after it has returned
 *   died       before the signal is sent         end        after the promise has settled
 * Things that happen somewhere between two moments carry both: they happened in [from, t].
 */
import type { Via } from '../../src/index.ts'
import type { Wants } from './wants.ts'

export type Mode = 'fair' | 'unfair' | 'fairAfter' | 'once'

/** What a fault can do to waiters: 'worker': to those of one process; 'key': of one lock; 'server': to all; 'nothing': to none. */
export type Reach = 'worker' | 'key' | 'server' | 'nothing'

/** A waiter: its label is the name of its process. By ticket. */
export type Entry = [id: string, ticket: string, worker: string, owner: string]

interface Kinds {
  /**
   * The terms of the run, in ms: what the checker's bounds are made of. `servers`: how many servers the locks are a quorum of;
   * absent: they have one server.
   */
  run: { seed: number; waiterTtl: number; longestLease: number; outageTimeout: number; servers?: number }
  /**
   * The server's time of day at this moment: tokens are counted in it. It runs on from here until the next such event. `server`: of a
   * quorum, the number of the server.
   */
  clock: { wall: number; server?: number }

  started: { worker: string }
  /** Killed by the orchestrator. */
  died: { worker: string }
  /** `forced`: it had closed its client and did not end by itself. */
  exited: { worker: string; forced: boolean }
  /** Something that must never happen in a process: an unhandled rejection, an error of an unknown class. */
  crash: { worker: string; error: string }
  /** The event loop did not run between `from` and now. Without `worker`: that of the orchestrator and its proxies. */
  stall: { worker?: string; from: number }
  /** The client said that it was disconnected, or connected again. */
  link: { worker: string; up: boolean }

  /**
   * `patience`: ms within which the promise has to settle; absent: for ever. `abort`: ms after which the caller itself
   * gives up; absent: never. `lease`: ms that it asked for. `headStart`: ms by which it is ordered earlier. `part`: the name of a call for several locks, which asks for this one only once it has those before it, and gives
   * it back if it does not get those behind it.
   */
  request: {
    worker: string
    attempt: string
    key: string
    mode: Mode
    wants?: Wants
    owner?: string
    patience?: number
    abort?: number
    lease?: number
    headStart?: number
    part?: string
  }
  waiting: { worker: string; key: string; owner: string }
  grant: {
    worker: string
    attempt: string
    key: string
    id: string
    owner: string
    token: number
    via: Via
    /** Until when the process itself believes to hold: monotonic ms, as all times here. */
    deadline: number
  }
  /** The deadline was raised. */
  renewed: { worker: string; id: string; deadline: number }
  /** `held`: what the lease said of itself at the call. */
  release: { worker: string; id: string; held: boolean }
  released: { worker: string; id: string; result: boolean | string }
  lost: { worker: string; id: string }
  /** `deadlock`: it would have waited for its own caller. `lost`: what it had of several locks was lost while it waited for the others. */
  end: {
    worker: string
    attempt: string
    how: 'timeout' | 'refused' | 'aborted' | 'failed' | 'closed' | 'deadlock' | 'lost'
    error?: string
  }

  /** The fair queue of a key as Redis had it: of a read-write lock that of its writers, and at the same instant that of its readers. */
  queue: { key: string; from: number; entries: Entry[]; readers?: Entry[] }
  /**
   * What Redis knew of the holds of a key (of a process; of all) was taken away from outside. `closed`: nobody else may be granted the
   * lock for that before the hold would have ended, so only its early loss is excused.
   */
  taken: { key?: string; worker?: string; from: number; how: string; closed?: true }
  /** A message is sent that tells a waiter of a grant which Redis has not made. */
  forged: { key: string; id: string; token: number }
  /** `servers`: of a quorum, the numbers of the servers that it is about; absent: it is about all. */
  fault: {
    fault: number
    name: string
    phase: 'begin' | 'end'
    reach: Reach
    worker?: string
    key?: string
    servers?: readonly number[]
  }
  /** From here until the next storm no fault is active. */
  calm: object
  storm: object
  /** No more requests; within `bound` ms all that wait are granted or settled. */
  healed: { bound: number }
  /** Names of keys of locks in Redis after everything has ended and run out. */
  left: { names: string[] }

  /** The file witness: in its section, while it held, a process met others that were inside and believed to hold, too many for one lock. */
  met: { worker: string; key: string; id: string; others: string[] }
  /** The fenced register refused a process that held before and after: a newer token had been there. */
  fenced: { worker: string; key: string; id: string; token: number; newer: number }
  /** The register took this process's write. */
  written: { worker: string; key: string; id: string; token: number }
  /** What the register of a key took, in its own order. */
  register: { key: string; entries: [token: number, id: string][] }
}

export type Kind = keyof Kinds
export type EventOf<K extends Kind> = { readonly t: number; readonly kind: K } & Readonly<Kinds[K]>
export type HistoryEvent = { [K in Kind]: EventOf<K> }[Kind]
/** What a recorder is told: it adds `t` and `kind`. */
export type Fields<K extends Kind> = Kinds[K]

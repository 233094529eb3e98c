/**
 * The events of a history. Every process of a run appends its own events to one JSON-lines file. `t` is a time of the
 * machine's monotonic clock, in ms. All processes share this clock, so times of different processes can be compared.
 *
 * The checker relies on when the recording process reads the clock:
 *  grant      after `lock` has returned         release    before `release` is called
 *  request    before `lock` is called           released   after `release` has returned
 *  died       before the signal is sent         end        after the promise has settled
 * An event at an unknown moment has two times: it happened in [from, t].
 */
import type { Via } from '../../src/index.ts'
import type { Wants } from './wants.ts'

export type Mode = 'fair' | 'unfair' | 'fairAfter' | 'once'

/**
 * The waiters that a fault can affect. 'worker': those of one process; 'key': those of one lock; 'server': all;
 * 'nothing': none.
 */
export type Reach = 'worker' | 'key' | 'server' | 'nothing'

/**
 * A waiter in a queue. `worker` is the name of its process, which is also the client's label. Entries are sorted by
 * ticket.
 */
export type Entry = [id: string, ticket: string, worker: string, owner: string]

interface Kinds {
  /**
   * The parameters of the run, in ms, from which the checker derives its bounds. `servers` is the number of servers of
   * the quorum; absent if the locks are on one server.
   */
  run: { seed: number; waiterTtl: number; longestLease: number; outageTimeout: number; servers?: number }
  /**
   * Records what the server's clock shows. Tokens are times of this clock. The checker assumes that the clock advances
   * normally until the next `clock` event. `server` is the number of the server in a quorum.
   */
  clock: { wall: number; server?: number }

  started: { worker: string }
  /** The orchestrator killed the process. */
  died: { worker: string }
  /** The process ended. `forced`: the process closed its client, but did not end on its own, so it was killed. */
  exited: { worker: string; forced: boolean }
  /** An event that must never happen in a process: an unhandled rejection, or an error of an unknown class. */
  crash: { worker: string; error: string }
  /**
   * The event loop did not run between `from` and now. Without `worker`: the event loop of the orchestrator and its
   * proxies.
   */
  stall: { worker?: string; from: number }
  /** The client reported that it was disconnected, or connected again. */
  link: { worker: string; up: boolean }

  /**
   * - `patience`: ms within which the promise has to settle; absent: unlimited.
   * - `abort`: ms after which the caller itself gives up; absent: never.
   * - `lease`: the requested lease in ms.
   * - `headStart`: Redis orders the request as if it had come this many ms earlier.
   * - `minHold`: the lock stays taken for so many ms from the grant.
   * - `part`: the name of a call for several locks. The call requests its locks one after another, so it requests this
   *   lock once it has all earlier locks. If it does not get a later lock, it releases this one.
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
    minHold?: number
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
    /** The numbers of the permits, if the call has asked for them. */
    slots?: readonly number[]
    /** The process relies on the hold until this time. Like all times here, it is in monotonic ms. */
    deadline: number
  }
  /** The process has renewed the hold, and now relies on it until this later deadline. */
  renewed: { worker: string; id: string; deadline: number }
  /**
   * The process calls `release`. `held` is the value of `lease.held` at that moment. `doubt`: it is false only because
   * the time of day has jumped, and the lease has not ended.
   */
  release: { worker: string; id: string; held: boolean; doubt?: boolean }
  released: { worker: string; id: string; result: boolean | string }
  lost: { worker: string; id: string }
  /**
   * `how` says why the call ended without a grant. With `deadlock`, the call would have waited for a hold of its own
   * owner. With `lost`, one of several locks was lost while the call waited for the others.
   */
  end: {
    worker: string
    attempt: string
    how: 'timeout' | 'refused' | 'aborted' | 'failed' | 'closed' | 'deadlock' | 'lost'
    error?: string
  }

  /**
   * The fair queue of a key as stored in Redis. For a read-write lock, `entries` is the writers' queue and `readers`
   * the readers' queue at the same instant.
   */
  queue: { key: string; from: number; entries: Entry[]; readers?: Entry[] }
  /**
   * A fault removed holds from Redis: those of a key, those of a process, or all holds. `closed` means that no other
   * caller is granted the lock before the deadline of the removed hold. So such a fault excuses an early notice of the
   * loss, but it excuses no overlap.
   */
  taken: { key?: string; worker?: string; from: number; how: string; closed?: true }
  /** A forged message was sent to a waiter. It reports a grant that Redis has not made. */
  forged: { key: string; id: string; token: number }
  /** `servers`: in a quorum, the numbers of the affected servers; absent: all. */
  fault: {
    fault: number
    name: string
    phase: 'begin' | 'end'
    reach: Reach
    worker?: string
    key?: string
    servers?: readonly number[]
  }
  /** From this event until the next `storm`, no fault is active, except faults of a minority of a quorum. */
  calm: object
  storm: object
  /** After this event, no more requests are made. Within `bound` ms, all waiting calls are granted or settled. */
  healed: { bound: number }
  /** Names of lock keys that are left in Redis after everything has ended and expired. */
  left: { names: string[] }

  /**
   * While this process held the lock, it found the files of other processes that relied on holds of the same lock
   * (witnesses.ts). Together, all these holds exceed what the lock allows.
   */
  met: { worker: string; key: string; id: string; others: string[] }
  /**
   * The register, which the lock protects, refused a write because it had already seen a newer token. The process held
   * the lock before and after the attempt.
   */
  fenced: { worker: string; key: string; id: string; token: number; newer: number }
  /** The register, which the lock protects, accepted this process's write. */
  written: { worker: string; key: string; id: string; token: number }
  /** The writes that a key's register accepted, in the order in which it accepted them. */
  register: { key: string; entries: [token: number, id: string][] }
}

export type Kind = keyof Kinds
export type EventOf<K extends Kind> = { readonly t: number; readonly kind: K } & Readonly<Kinds[K]>
export type HistoryEvent = { [K in Kind]: EventOf<K> }[Kind]
/** The fields that are passed to a recorder, which adds `t` and `kind`. */
export type Fields<K extends Kind> = Kinds[K]

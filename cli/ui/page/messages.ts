/**
 * What the server tells the page, and what the page tells the server. Types only: both sides are compiled apart, since one
 * has Node and the other a document. Texts and times come as they are to be shown; the page decides nothing about them.
 */

/** All that the page shows. A part that is the same as in the frame before, on the same stream, is left out. */
export interface Frame {
  /** ms since the picture was complete. Null: there is none yet. */
  readonly age: number | null
  /** ms of age beyond which a picture is late. */
  readonly patience: number
  /** Why there is no newer picture. Null: nothing is wrong. */
  readonly trouble: string | null
  readonly totals?: Totals
  readonly trend?: TrendLines
  readonly table?: Table
  /** The lock that is looked at. Null: none is. */
  readonly lock?: OpenLock | null
}

export interface Totals {
  readonly held: string
  readonly queued: string
  readonly waiters: string
}

/** How long those who wait had waited, over the last minutes. */
export interface TrendLines {
  /** Now; "–" while nobody waits. */
  readonly longest: string
  readonly median: string
  /** What the upper edge stands for. Empty: nobody has waited. */
  readonly top: string
  /** Paths in a field of 600 × 100. */
  readonly area: string
  readonly line: string
  readonly middle: string
}

export interface Table {
  /** Locks that there are, and those that the filter lets through: more than there are rows, if that is too many. */
  readonly locks: number
  readonly matching: number
  readonly rows: readonly Row[]
}

/** A key has one lock of each kind. */
export interface LockName {
  readonly key: string
  /** Absent: it is the mutex. */
  readonly kind?: 'readWrite' | 'semaphore'
}

export interface Row extends LockName {
  /** The kind for the eye. */
  readonly kindName?: string
  /** The key for the eye. Absent: it is the key itself. */
  readonly name?: string
  readonly holder: string
  /** What stands behind the holder, and is not cut: how many others there are. */
  readonly behind?: string
  readonly heldFor: string
  /** Of the lease that ends first. */
  readonly left: string
  /** Of the longest that this lease was seen to have left, 0..1. Null: nobody holds it. */
  readonly share: number | null
  readonly waiters: string
  readonly longestWait: string
}

export interface OpenLock extends Row {
  readonly owner: string
  readonly holds: number
  /** Of the first holder; null: nobody holds it. */
  readonly token: number | null
  readonly id: string | null
  /** Of a lock that may have several holders. */
  readonly shared?: Shared
  readonly trend: TrendLines
  readonly queue: readonly QueueRow[]
  /** Waiters behind those in `queue`. */
  readonly more: number
}

export interface Shared {
  /** What it is, and how much of it is taken. */
  readonly said: string
  /** What a holder has of it, and a waiter wants: title of a column. */
  readonly title: string
  readonly holders: readonly HolderRow[]
  /** Holders behind those in `holders`. */
  readonly more: number
}

export interface HolderRow {
  readonly id: string
  readonly holder: string
  /** What it has of the lock. */
  readonly part: string
  readonly heldFor: string
  readonly left: string
}

export interface QueueRow {
  readonly id: string
  readonly position: number
  readonly waiter: string
  /** What it wants of a lock that may have several holders. */
  readonly part?: string
  readonly waited: string
  readonly left: string
}

/** What the page asks for: the query of its stream. */
export interface View {
  readonly sort: string
  readonly reversed: boolean
  readonly filter: string
  /** How many rows of the table, of the holders of the lock that is looked at, and of its queue. */
  readonly rows: number
  readonly holders: number
  readonly queue: number
  /** The lock that is looked at. */
  readonly open: LockName | null
}

export interface ReleaseRequest extends LockName {
  /** Of the holder that the page has shown: nobody else is to lose the lock. */
  readonly id: string
}

/** `said`: what happened, as a sentence. */
export interface ReleaseAnswer {
  readonly released: boolean
  readonly said: string
}

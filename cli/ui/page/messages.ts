/**
 * The messages from the server to the page, and from the page to the server. Types only: the two sides are compiled
 * separately, since one has Node and the other a document. The server formats texts and times; the page shows them
 * unchanged.
 */

/**
 * Everything that the page shows. A part is left out if it has not changed since the previous frame of the same stream.
 */
export interface Frame {
  /** ms since the picture was complete. Null if there is none yet. */
  readonly age: number | null
  /** ms of age beyond which a picture is late. */
  readonly patience: number
  /** Why there is no newer picture. Null if nothing is wrong. */
  readonly trouble: string | null
  readonly totals?: Totals
  readonly trend?: TrendLines
  readonly table?: Table
  /** The opened lock. Null if none is open. */
  readonly lock?: OpenLock | null
}

export interface Totals {
  readonly held: string
  readonly queued: string
  readonly waiters: string
}

/** How long waiters had waited, over the last minutes. */
export interface TrendLines {
  /** The current value; "–" if nobody waits. */
  readonly longest: string
  readonly median: string
  /** The value at the upper edge. Empty if nobody has waited. */
  readonly top: string
  /** SVG paths in a field of 600 × 100. */
  readonly area: string
  readonly line: string
  readonly middle: string
}

export interface Table {
  /**
   * The number of locks, and of those that match the filter. If there are too many, not all matching ones have a row.
   */
  readonly locks: number
  readonly matching: number
  readonly rows: readonly Row[]
}

/** A key has one lock of each kind. */
export interface LockName {
  readonly key: string
  /** Absent for the mutex. */
  readonly kind?: 'readWrite' | 'semaphore'
}

export interface Row extends LockName {
  /** The kind in words. */
  readonly kindName?: string
  /** The key as it is displayed. Absent if it equals the key. */
  readonly name?: string
  readonly holder: string
  /** The text after the holder, which is never cut: how many others there are. */
  readonly behind?: string
  readonly heldFor: string
  /** Time left of the lease that ends first. */
  readonly left: string
  /** The share left of the longest remaining time that was seen for this lease, 0..1. Null if nobody holds it. */
  readonly share: number | null
  readonly waiters: string
  readonly longestWait: string
}

export interface OpenLock extends Row {
  readonly owner: string
  readonly holds: number
  /** The first holder's; null if nobody holds it. */
  readonly token: number | null
  readonly id: string | null
  /** Present for a lock that may have several holders. */
  readonly shared?: Shared
  readonly trend: TrendLines
  readonly queue: readonly QueueRow[]
  /** Number of waiters that are not in `queue`. */
  readonly more: number
}

export interface Shared {
  /** The kind of lock, and how much of it is taken. */
  readonly said: string
  /** Title of the column for what a holder has or a waiter wants. */
  readonly title: string
  readonly holders: readonly HolderRow[]
  /** Number of holders that are not in `holders`. */
  readonly more: number
}

export interface HolderRow {
  readonly id: string
  readonly holder: string
  /** What it holds of the lock. */
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
  /** How many rows of the table, and of the opened lock's holders and queue. */
  readonly rows: number
  readonly holders: number
  readonly queue: number
  /** The opened lock. */
  readonly open: LockName | null
}

export interface ReleaseRequest extends LockName {
  /** The hold that the page has shown. No other holder may lose the lock. */
  readonly id: string
}

/** `said` is a sentence about what happened. */
export interface ReleaseAnswer {
  readonly released: boolean
  readonly said: string
}

/**
 * The messages between the server and the page. This file contains only types, because server and page are compiled
 * separately: the server for Node, and the page for a browser. The server formats texts and times, and the page shows
 * them unchanged.
 */

/**
 * Everything that the page shows. A part is left out if it has not changed since the previous frame of the same stream.
 */
export interface Frame {
  /** The age of the data on the page, in ms. Null if there are none yet. */
  readonly age: number | null
  /** If the data on the page are older than this, in ms, the page says that they are late. */
  readonly patience: number
  /** Why there are no newer data. Null if nothing is wrong. */
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

/** The chart of how long waiters have waited over the last minutes. */
export interface TrendLines {
  /** The longest wait at the last reading of all locks; "–" if nobody waits. `median` is the median wait. */
  readonly longest: string
  readonly median: string
  /** The value at the upper edge of the chart. Empty if nobody has waited. */
  readonly top: string
  /** SVG paths in a chart of 600 × 100. */
  readonly area: string
  readonly line: string
  readonly middle: string
}

export interface Table {
  /**
   * `locks` is the number of all locks, and `matching` is the number of locks that match the filter. `rows` may show
   * fewer locks than match, because its length is limited.
   */
  readonly locks: number
  readonly matching: number
  readonly rows: readonly Row[]
}

/** Identifies a lock: a key may have one lock of each kind. */
export interface LockName {
  readonly key: string
  /** The kind of lock. Absent for the mutex. */
  readonly kind?: 'readWrite' | 'semaphore'
}

export interface Row extends LockName {
  /** The kind of lock in words. */
  readonly kindName?: string
  /** How the key is displayed. Absent if the key is displayed unchanged. */
  readonly name?: string
  readonly holder: string
  /** The text after the holder: how many other holders there are. This text is never cut. */
  readonly behind?: string
  readonly heldFor: string
  /** Time left of the lease that ends first. */
  readonly left: string
  /** The remaining part of the lease that ends first, 0..1. Null if nobody holds the lock. */
  readonly share: number | null
  readonly waiters: string
  readonly longestWait: string
}

export interface OpenLock extends Row {
  readonly owner: string
  readonly holds: number
  /** The first holder's fencing token and hold id; null if nobody holds the lock. */
  readonly token: number | null
  readonly id: string | null
  /** Present if the lock may have several holders. */
  readonly shared?: Shared
  /** Present if the lock has groups. */
  readonly groups?: Groups
  readonly trend: TrendLines
  readonly queue: readonly QueueRow[]
  /** Number of waiters that are not in `queue`. */
  readonly more: number
}

export interface Shared {
  /** A sentence that names the kind of lock, and says who holds it and how many callers wait. */
  readonly said: string
  /** The title of the column that shows each holder's `part`. */
  readonly title: string
  readonly holders: readonly HolderRow[]
  /** Number of holders that are not in `holders`. */
  readonly more: number
}

export interface Groups {
  readonly rows: readonly GroupRow[]
  /** Number of groups that are not in `rows`. */
  readonly more: number
}

export interface GroupRow {
  readonly id: string
  /** Name, taken, limit, weight and waiting. */
  readonly cells: readonly string[]
}

export interface HolderRow {
  readonly id: string
  readonly holder: string
  /** The permits or the mode that the holder has. */
  readonly part: string
  readonly group?: string
  readonly heldFor: string
  readonly left: string
}

export interface QueueRow {
  readonly id: string
  readonly position: number
  readonly waiter: string
  /** The permits or the mode that the waiter wants. Absent if the lock can have only one holder. */
  readonly part?: string
  readonly group?: string
  readonly why?: string
  readonly waited: string
  readonly left: string
  /** The estimated time until the grant. Absent if there is no estimate. */
  readonly expected?: string
}

/** The view that the page asks for. It is sent as the query of the stream's URL. */
export interface View {
  readonly sort: string
  readonly reversed: boolean
  readonly filter: string
  /** Of the opened lock, only groups, holders and waiters that match this text are sent. */
  readonly within: string
  /** How many rows the server may send: of the table, and of the opened lock's groups, holders and queue. */
  readonly rows: number
  readonly groups: number
  readonly holders: number
  readonly queue: number
  readonly open: LockName | null
}

export interface ReleaseRequest extends LockName {
  /** The hold that the page showed. Only this hold may be ended. */
  readonly id: string
}

/** `said` is a sentence for the user that says whether the lock was released. */
export interface ReleaseAnswer {
  readonly released: boolean
  readonly said: string
}

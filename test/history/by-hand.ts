/**
 * Helpers for hand-made histories. Such a history has one key and one server. When the monotonic clock shows 0, the
 * server's time of day is WALL.
 */
import { check } from './check.ts'
import type { Entry, Fields, HistoryEvent, Kind, Mode } from './events.ts'
import type { Wants } from './wants.ts'

export const WALL = 1_800_000_000_000

export function at<K extends Kind>(t: number, kind: K, fields: Fields<K>): HistoryEvent {
  return { t, kind, ...fields } as HistoryEvent
}

export const run: readonly HistoryEvent[] = [
  at(0, 'run', { seed: 1, waiterTtl: 3_000, longestLease: 3_000, outageTimeout: 4_000 }),
  at(0, 'clock', { wall: WALL }),
]

/** Returns the invariants that the history violates. */
export function found(...list: (HistoryEvent | HistoryEvent[])[]): string[] {
  return check([...run, ...list.flat()]).violations.map(({ invariant }) => invariant)
}

/** Returns the invariants that the history violates if a quorum of five servers keeps its locks. */
export function foundOverFive(...list: (HistoryEvent | HistoryEvent[])[]): string[] {
  return check([...overFive(run), ...list.flat()]).violations.map(({ invariant }) => invariant)
}

/**
 * Turns the history into one in which a quorum of five servers keeps the locks. All of them have the original server's
 * clock.
 */
export function overFive(events: readonly HistoryEvent[]): HistoryEvent[] {
  return events.flatMap((event): HistoryEvent | HistoryEvent[] => {
    if (event.kind === 'run') return { ...event, servers: 5 }
    return event.kind === 'clock' ? [0, 1, 2, 3, 4].map(server => ({ ...event, server })) : event
  })
}

/** Makes a request and its grant. The server makes the grant at `issued`, and the client receives it a moment later. */
export function granted(
  id: string,
  issued: number,
  fields: {
    lease?: number
    owner?: string
    via?: 'reentry'
    worker?: string
    /** How far the server's clock, and so the token, is ahead of the true time, in ms. */
    off?: number
    asked?: number
    heard?: number
    wants?: Wants
    mode?: Mode
    part?: string
    patience?: number
    minHold?: number
    headStart?: number
    slots?: readonly number[]
  } = {},
): HistoryEvent[] {
  const { lease = 1_000, owner = id, via = 'immediate' as const, worker = `w-${id}`, off = 0 } = fields
  const {
    asked = issued - 1,
    heard = issued + 1,
    mode = 'fair',
    wants,
    part,
    patience,
    minHold,
    headStart,
    slots,
  } = fields
  const grant = {
    worker,
    attempt: id,
    key: 'k',
    id,
    owner,
    token: tokenOf(issued + off),
    via,
    deadline: issued + lease - 3,
    ...(slots && { slots }),
  }
  const terms = {
    ...(wants && { wants }),
    ...(part && { part }),
    ...(patience !== undefined && { patience }),
    ...(minHold && { minHold }),
    ...(headStart && { headStart }),
  }
  return [at(asked, 'request', { worker, attempt: id, key: 'k', mode, owner, ...terms }), at(heard, 'grant', grant)]
}

export function tokenOf(t: number): number {
  return (WALL + t) * 1000
}

export function released(id: string, t: number, result = true): HistoryEvent[] {
  return [
    at(t, 'release', { worker: `w-${id}`, id, held: result }),
    at(t + 1, 'released', { worker: `w-${id}`, id, result }),
  ]
}

export function lost(id: string, t: number): HistoryEvent {
  return at(t, 'lost', { worker: `w-${id}`, id })
}

export function queue(t: number, ...ids: string[]): HistoryEvent {
  return at(t, 'queue', { key: 'k', from: t - 1, entries: entriesOf(ids) })
}

/** Makes a snapshot of both queues of a read-write lock. */
export function queues(
  t: number,
  { writers = [], readers = [] }: { writers?: string[]; readers?: string[] },
): HistoryEvent {
  return at(t, 'queue', { key: 'k', from: t - 1, entries: entriesOf(writers), readers: entriesOf(readers) })
}

function entriesOf(ids: string[]): Entry[] {
  return ids.map(id => [id, String(ids.indexOf(id)), `w-${id}`, id])
}

/**
 * Mutations for locks with several holders. Each turns a good history into a history that a broken lock could make.
 * mutations.ts has the mutations for locks of every kind.
 */
import type { Entry, EventOf, HistoryEvent } from './events.ts'
import type { Mutation } from './mutations.ts'
import { WALL } from './simulated.ts'
import { type Wants, weightOf } from './wants.ts'

interface Held {
  readonly grant: EventOf<'grant'>
  readonly request: EventOf<'request'>
  readonly release: EventOf<'release'>
  readonly end: number
}

function heldIn(events: readonly HistoryEvent[]): Held[] {
  const requests = new Map(events.flatMap(event => (event.kind === 'request' ? [[event.attempt, event] as const] : [])))
  const releases = new Map(events.flatMap(event => (event.kind === 'release' ? [[event.id, event] as const] : [])))
  return events.flatMap(grant => {
    if (grant.kind !== 'grant') return []
    const release = releases.get(grant.id)!
    return [{ grant, request: requests.get(grant.attempt)!, release, end: release.held ? release.t : grant.deadline }]
  })
}

function weight({ request }: Held): number {
  return weightOf(request.wants).permits
}

/**
 * Returns the holds that the server had granted before this hold, and that were still live when the grant of this hold
 * arrived.
 */
function beside(held: readonly Held[], { grant }: Held): Held[] {
  return held.filter(other => other.grant.key === grant.key && other.grant.token < grant.token && other.end > grant.t)
}

/** Prolongs the hold, so that its process relies on it until after `t`. */
function outlasts(events: readonly HistoryEvent[], { grant, release }: Held, t: number): HistoryEvent[] {
  return events
    .filter(event => !(event.kind === 'lost' && event.id === grant.id))
    .map(event => (event === release ? { ...event, t: t + 0.01, held: true } : event))
}

/**
 * Prolongs a hold so that it overlaps a later hold, although the lock has too few permits for both. If `first` is
 * given, only a hold whose call requested `first` is prolonged. If `second` is given, the call of the later hold must
 * have requested `second`.
 */
const tooMany =
  (first?: Wants, second?: Wants): Mutation =>
  events => {
    const held = heldIn(events)
    for (const last of held) {
      if (second && last.request.wants !== second) continue
      const taken = beside(held, last).reduce((sum, each) => sum + weight(each), weight(last))
      const ended = held.find(
        other =>
          other.grant.key === last.grant.key &&
          other.grant.token < last.grant.token &&
          other.end <= last.grant.t &&
          (!first || other.request.wants === first) &&
          taken + weight(other) > weightOf(last.request.wants).of,
      )
      if (ended) return outlasts(events, ended, last.grant.t)
    }
    return undefined
  }

export const permitsExceeded = tooMany()
export const readWhileWritten = tooMany('write', 'read')
export const writtenWhileRead = tooMany('read', 'write')

/**
 * A caller of a semaphore is admitted, although all holders together then have more permits than the total that this
 * caller has stated. Another holder has stated a total that is large enough.
 */
export const ownNumberIgnored: Mutation = events => {
  const held = heldIn(events)
  for (const last of held) {
    const others = beside(held, last)
    const taken = others.reduce((sum, each) => sum + weight(each), weight(last))
    if (others.length === 0 || !others.some(({ request }) => weightOf(request.wants).of >= taken)) continue
    const wants = [weight(last), taken - 1] as const
    return events.map(event => (event === last.request ? { ...event, wants } : event))
  }
  return undefined
}

/** A holder of a semaphore is admitted again, as if it had re-entered. */
export const permitsReentered: Mutation = events => {
  const [first] = heldIn(events)
  return (
    first && [
      ...events,
      ...entered(first.grant, { wants: [1, 1_000], id: 'again', token: first.grant.token, via: 'reentry' }),
    ]
  )
}

/**
 * Returns the snapshots that show a waiter in this queue, each with the waiter's hold, which was granted well after the
 * snapshot.
 */
function* seen(events: readonly HistoryEvent[], queue: 'entries' | 'readers'): Generator<[EventOf<'queue'>, Held]> {
  const held = new Map(heldIn(events).map(each => [each.grant.id, each]))
  for (const sight of events) {
    if (sight.kind !== 'queue') continue
    for (const [id] of sight[queue] ?? []) {
      const waiter = held.get(id)
      if (waiter && waiter.grant.token > micros(sight.t + 1)) yield [sight, waiter]
    }
  }
}

/** A caller that does not queue is admitted although another caller is queued. */
const barged =
  (wants: Wants): Mutation =>
  events => {
    for (const queue of ['entries', 'readers'] as const) {
      for (const [sight] of seen(events, queue)) return [...events, ...newcomer(sight, wants, 'once')]
    }
    return undefined
  }

export const smallBarged = barged([1, 1_000])
export const readerBarged = barged('read')
export const writerBarged = barged('write')

/** Two callers of one group are admitted, one after the other, before a waiter of another group that came before them. */
export const groupPassed: Mutation = events => {
  const last = Math.max(...events.map(({ t }) => t))
  const [key, t] = ['groups', last + 10]
  const call = (owner: string, at: number): HistoryEvent[] => {
    const [worker, wants] = [`w-${owner}`, [1, 1, owner[0]] as const]
    const grant = { worker, attempt: owner, key, id: owner, owner, token: micros(at), via: 'handoff' } as const
    return [
      { t: t - 1, kind: 'request', worker, attempt: owner, key, mode: 'fair', owner, wants },
      { t: at + 1, kind: 'grant', ...grant, deadline: at + 100 },
      ...ended(owner, worker, at + 2),
    ]
  }
  const entries = ['b1', 'a1', 'a2', 'a3'].map((id, i): Entry => [id, `${i}`, `w-${id}`, id])
  const sight = { t, kind: 'queue', key, from: t - 0.5, entries } as const
  return [...events, sight, ...['a1', 'a2', 'a3', 'b1'].flatMap((owner, i) => call(owner, t + 10 + 10 * i))]
}

/** A newly arrived reader is admitted beside readers although a writer is queued. */
export const writerStarved: Mutation = events => {
  const readers = heldIn(events).filter(({ request }) => request.wants === 'read')
  for (const [sight, writer] of seen(events, 'entries')) {
    const reads = readers.some(({ grant, end }) => grant.key === sight.key && grant.t <= sight.from && end > sight.t)
    if (reads && sight.entries[0]![0] === writer.grant.id) return [...events, ...newcomer(sight, 'read', 'fair')]
  }
  return undefined
}

/** A reader is admitted only after a second writer's turn. */
export const readerStarved: Mutation = events => {
  const writers = heldIn(events).filter(({ request }) => request.wants === 'write')
  for (const [sight, reader] of seen(events, 'readers')) {
    const [, second] = writers.filter(({ grant, end }) => grant.key === sight.key && end > sight.t)
    if (!second || second.grant.token < reader.grant.token) continue
    const late = second.grant.t + 0.01 - reader.grant.t
    return events.map(event => {
      const own =
        ('id' in event && event.id === reader.grant.id) ||
        ('attempt' in event && event.attempt === reader.grant.attempt)
      if (!own || event.kind === 'request') return event
      const deadline = 'deadline' in event ? { deadline: event.deadline + late } : {}
      const token = event.kind === 'grant' ? { token: second.grant.token + 1 } : {}
      return { ...event, t: event.t + late, ...deadline, ...token } as HistoryEvent
    })
  }
  return undefined
}

/**
 * An owner that holds the lock as a reader makes a call to write. The call is granted, or it is refused for another
 * reason than a deadlock.
 */
const upgraded =
  (how: 'granted' | 'refused'): Mutation =>
  events => {
    const reader = heldIn(events).find(({ request, grant, end }) => request.wants === 'read' && end > grant.t + 0.05)
    if (!reader) return undefined
    const { worker, key, owner, token, t } = reader.grant
    if (how === 'granted')
      return [...events, ...entered(reader.grant, { wants: 'write', id: 'up', token: token + 1, via: 'immediate' })]
    return [
      ...events,
      { t: t + 0.01, kind: 'request', worker, attempt: 'up', key, mode: 'once', owner, wants: 'write' },
      { t: t + 0.02, kind: 'end', worker, attempt: 'up', how },
    ]
  }

export const letInToWrite = upgraded('granted')
export const refusedToWrite = upgraded('refused')

/** A call to write is refused as a deadlock, although its owner does not read. */
export const noDeadlock: Mutation = events => {
  const request = events.findLast(event => event.kind === 'request')
  if (!request) return undefined
  const asked = { ...request, attempt: 'alone', owner: 'alone', wants: 'write', t: request.t + 0.01 } as const
  const { worker, attempt } = asked
  return [...events, asked, { t: asked.t + 0.01, kind: 'end', worker, attempt, how: 'deadlock' }]
}

interface Entering {
  readonly wants: Wants
  readonly id: string
  readonly token: number
  readonly via: 'immediate' | 'reentry'
}

/** Makes a second, short hold of the same owner inside this hold. */
function entered({ worker, key, owner, t, deadline }: EventOf<'grant'>, { wants, ...grant }: Entering): HistoryEvent[] {
  const attempt = grant.id
  return [
    { t: t + 0.01, kind: 'request', worker, attempt, key, mode: 'once', owner, wants },
    { t: t + 0.02, kind: 'grant', worker, attempt, key, owner, deadline, ...grant },
    ...ended(grant.id, worker, t + 0.03),
  ]
}

/** Makes a newcomer that asks right after the snapshot, and is granted at once. */
function newcomer({ t, key }: EventOf<'queue'>, wants: Wants, mode: 'once' | 'fair'): HistoryEvent[] {
  const [worker, attempt] = ['newcomer', 'new']
  const grant = { worker, attempt, key, id: 'new', owner: 'new', token: micros(t + 0.02), via: 'immediate' } as const
  return [
    { t: t + 0.01, kind: 'request', worker, attempt, key, mode, wants },
    { t: t + 0.03, kind: 'grant', ...grant, deadline: t + 100 },
    ...ended('new', worker, t + 0.04),
  ]
}

function ended(id: string, worker: string, t: number): HistoryEvent[] {
  return [
    { t, kind: 'release', worker, id, held: true },
    { t: t + 0.01, kind: 'released', worker, id, result: true },
  ]
}

function micros(t: number): number {
  return Math.round((WALL + t) * 1000)
}

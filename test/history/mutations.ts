/**
 * Mutations. Each turns a good history into a history that a broken lock could make. It returns undefined if it cannot
 * be applied.
 */
import type { Entry, EventOf, HistoryEvent, Kind } from './events.ts'
import { stillness } from './progress.ts'

export type Mutation = (events: readonly HistoryEvent[]) => HistoryEvent[] | undefined

function all<K extends Kind>(events: readonly HistoryEvent[], kind: K): EventOf<K>[] {
  return events.filter(event => event.kind === kind) as EventOf<K>[]
}

function change(events: readonly HistoryEvent[], of: HistoryEvent, to: Partial<HistoryEvent>): HistoryEvent[] {
  return events.map(event => (event === of ? ({ ...event, ...to } as HistoryEvent) : event))
}

/** Finds two consecutive grants of a key. */
function neighbours(events: readonly HistoryEvent[]): [EventOf<'grant'>, EventOf<'grant'>] | undefined {
  const last = new Map<string, EventOf<'grant'>>()
  for (const grant of all(events, 'grant')) {
    const before = last.get(grant.key)
    if (before) return [before, grant]
    last.set(grant.key, grant)
  }
  return undefined
}

/** The first of two holders relies on its hold until after the second holder was granted the lock. */
export const overlap: Mutation = events => {
  const pair = neighbours(events)
  if (!pair) return undefined
  const [{ id }, { t }] = pair
  const release = all(events, 'release').find(event => event.id === id)!
  return change(
    events.filter(event => !(event.kind === 'lost' && event.id === id)),
    release,
    { t: t + 0.01, held: true },
  )
}

/**
 * The first of two holders renews its lease, instead of releasing it. It relies on this lease until after the second
 * holder was granted the lock.
 */
export const renewedTooLong: Mutation = events => {
  const pair = neighbours(events)
  if (!pair) return undefined
  const [{ id, worker, t: since }, { t }] = pair
  const others = events.filter(
    event => !(['release', 'released', 'lost'].includes(event.kind) && 'id' in event && event.id === id),
  )
  return [
    ...others,
    { t: since, kind: 'renewed', worker, id, deadline: t + 0.01 },
    { t: t + 0.01, kind: 'lost', worker, id },
  ]
}

export const repeatedToken: Mutation = events => {
  const pair = neighbours(events)
  return pair && change(events, pair[1], { token: pair[0].token })
}

export const tokensSwapped: Mutation = events => {
  const pair = neighbours(events)
  return pair && change(change(events, pair[0], { token: pair[1].token }), pair[1], { token: pair[0].token })
}

/**
 * A hold lasts longer than any caller may request, as if its predecessor or another hold of its owner had prolonged it.
 */
export const foreignLease: Mutation = events => {
  const grant = all(events, 'grant').at(-1)
  const [run] = all(events, 'run')
  return grant && run && change(events, grant, { deadline: grant.t + run.longestLease + 1 })
}

/** The last token is a second ahead of the time of day. */
export const aheadOfTime: Mutation = events => {
  const grant = all(events, 'grant').at(-1)
  return grant && change(events, grant, { token: grant.token + 1_000_000 })
}

/** Swaps the first two waiters of a queue in all snapshots. It then seems that the second waiter was granted first. */
export const orderSwapped: Mutation = events => {
  const sight = all(events, 'queue').find(
    ({ entries: [one, two] }) => one && two && granted(events, one[0]) && granted(events, two[0]),
  )
  if (!sight) return undefined
  const [first, second] = sight.entries.map(([id]) => id)
  const swapped = (id: string) => (id === first ? second! : id === second ? first! : id)
  return events.map(event => {
    if (event.kind !== 'queue') return event
    return {
      ...event,
      entries: event.entries.map(([id, ticket, worker]) => [swapped(id), ticket, worker, swapped(id)]),
    }
  })
}

function granted(events: readonly HistoryEvent[], id: string): boolean {
  return events.some(event => event.kind === 'grant' && event.id === id)
}

export const ticketChanged: Mutation = events => {
  const sight = all(events, 'queue').at(0)
  if (!sight) return undefined
  const later = ([id, ticket, ...rest]: Entry): Entry => [id, `${ticket}9`, ...rest]
  const { entries, readers } = sight
  const both = readers && { readers: readers.map(later) }
  return [...events, { ...sight, t: sight.t + 0.001, entries: entries.map(later), ...both }]
}

/** A waiter is never answered. */
export const lostWaiter: Mutation = events => {
  const end = all(events, 'end').at(-1)
  if (end) return events.filter(event => event !== end)
  const grant = all(events, 'grant').at(-1)
  return events.filter(
    event =>
      !(('id' in event && event.id === grant?.id) || event === grant) &&
      !(event.kind === 'register' && event.entries.some(([, id]) => id === grant?.id)),
  )
}

/**
 * A hold keeps other callers out for too long, for example because Redis keeps the record of a hold whose process has
 * died. The mutation delays the next grant, and all events after that grant, by more than I4 allows.
 */
export const outlivedHold: Mutation = events => {
  const [run] = all(events, 'run')
  const grants = all(events, 'grant')
  const releases = new Map(all(events, 'release').map(event => [event.id, event]))
  const last = grants.findLast(({ key, attempt, t }) => {
    const asked = all(events, 'request').find(request => request.attempt === attempt)
    const before = grants.filter(other => other.key === key && other.t < t)
    const ended = before.every(({ id, deadline }) => (releases.get(id)?.held ? releases.get(id)!.t : deadline) <= t)
    return asked && ended && before.some(other => other.t > asked.t)
  })
  if (!run || !last) return undefined
  const late = stillness(run) + 1
  return events.map(event => {
    if (event.t < last.t) return event
    const deadline = 'deadline' in event ? { deadline: event.deadline + late } : {}
    return { ...event, ...deadline, t: event.t + late } as HistoryEvent
  })
}

/** The last waiter is answered long after all faults were healed. */
export const lateWaiter: Mutation = events => {
  const healed = all(events, 'healed')[0]!
  const request = all(events, 'request').at(-1)!
  const t = healed.t + healed.bound + 1
  const others = events.filter(event => !('attempt' in event && event.attempt === request.attempt))
  const { patience: _, ...patient } = request
  return [...others, patient, { t, kind: 'end', worker: request.worker, attempt: request.attempt, how: 'aborted' }]
}

/** One process gets the lock again and again while another process waits. */
export const turnsTaken: Mutation = events => {
  const waiting = all(events, 'request').find(({ mode }) => mode === 'unfair')
  const clock = all(events, 'clock')[0]
  if (!waiting || !clock) return undefined
  const key = 'taken'
  const [begin, hold] = [waiting.t, 100]
  const token = (t: number) => Math.round((clock.wall + t) * 1000)
  const takes = Array.from({ length: 30 }, (_, i): HistoryEvent[] => {
    const [t, id, worker] = [begin + 2 + i * hold, `taken ${i}`, 'taker']
    const grant = {
      worker,
      attempt: id,
      key,
      id,
      owner: id,
      token: token(t),
      via: 'immediate',
      deadline: t + 250,
    } as const
    return [
      { t: t - 0.5, kind: 'request', worker, attempt: id, key, mode: 'unfair' },
      { t, kind: 'grant', ...grant },
      { t: t + hold - 2, kind: 'release', worker, id, held: true },
      { t: t + hold - 1, kind: 'released', worker, id, result: true },
    ]
  })
  const attempt = 'taken from'
  const { worker } = waiting
  return [
    ...events,
    ...takes.flat(),
    { t: begin, kind: 'request', worker, attempt, key, mode: 'unfair' },
    { t: begin + 31 * hold, kind: 'end', worker, attempt, how: 'aborted' },
  ]
}

export const residue: Mutation = events => change(events, all(events, 'left')[0]!, { names: ['lock:{k0}:q'] })

export const silentLoss: Mutation = events => {
  const lost = all(events, 'lost')[0]
  return lost && events.filter(event => event !== lost)
}

/** The register, which the lock protects, accepted a write of a caller that was never granted the lock. */
export const foreignWrite: Mutation = events => {
  const register = all(events, 'register')[0]
  return (
    register &&
    change(events, register, { entries: [...register.entries, [register.entries.at(-1)![0] + 1, 'nobody']] })
  )
}

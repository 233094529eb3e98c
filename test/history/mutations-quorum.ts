/**
 * Mutations for a mutex over a quorum of five servers. Each turns a good history into a history that a broken quorum
 * could make. mutations.ts has the mutations for locks of every kind.
 */
import type { EventOf, HistoryEvent } from './events.ts'
import { type Mutation, overlap } from './mutations.ts'

/** How long each minority of the servers is away, in ms. When it is back, the next minority goes away. */
const AWAY = 4_000

/**
 * Adds faults without making a violation. Some servers are always away, but the fault of each minority is over when the
 * fault of the next minority begins.
 */
export function withMinoritiesAway(events: readonly HistoryEvent[]): HistoryEvent[] {
  const [run] = events
  const end = events.at(-1)!.t + AWAY
  if (run?.kind !== 'run') throw new Error('a history begins with its terms')
  const faults: HistoryEvent[] = []
  for (let t = run.t, fault = 1; t < end; t += AWAY, fault++) {
    const same = { fault, name: 'stop', reach: 'server', servers: [fault % 5] } as const
    faults.push({ t, kind: 'fault', ...same, phase: 'begin' }, { t: t + AWAY, kind: 'fault', ...same, phase: 'end' })
  }
  return [run, ...faults, ...events.slice(1)]
}

function grants(events: readonly HistoryEvent[]): EventOf<'grant'>[] {
  return events.filter(event => event.kind === 'grant')
}

/**
 * All servers come back empty while locks are held, and grant the locks again before the earlier leases have ended.
 * This breaks a rule: until then, the votes of a server that has come back empty do not count.
 */
export const overlapWhereEmptied: Mutation = events => {
  const overlapping = overlap(events)
  return (
    overlapping && [
      ...overlapping,
      ...grants(events).map(({ t }): HistoryEvent => ({ t, kind: 'taken', from: t, how: 'restart', closed: true })),
    ]
  )
}

/** One server's clock is a second ahead of the others, and a token is another second ahead of that clock. */
export const aheadOfAll: Mutation = events => {
  const last = grants(events).at(-1)
  const clock = events.find(event => event.kind === 'clock')
  if (!last || !clock) return undefined
  return [
    ...events.map(event => (event === last ? { ...last, token: last.token + 2_000_000 } : event)),
    { ...clock, t: clock.t + 0.001, wall: clock.wall + 1_000, server: 4 },
  ]
}

/** A holder is notified of the loss of its hold long before its deadline. */
export const lostEarly: Mutation = events => {
  const last = grants(events).findLast(({ t, deadline }) => deadline - t > 10)
  if (!last) return undefined
  const { id, worker, t } = last
  const others = events.filter(
    event => !(['release', 'released', 'lost'].includes(event.kind) && 'id' in event && event.id === id),
  )
  return [
    ...others,
    { t: t + 1, kind: 'lost', worker, id },
    { t: t + 2, kind: 'release', worker, id, held: false },
    { t: t + 3, kind: 'released', worker, id, result: false },
  ]
}

export const lostElsewhere: Mutation = events => {
  const early = lostEarly(events)
  const t = grants(events).at(-1)?.t
  if (!early || t === undefined) return undefined
  return [...early, { t: t + 0.5, kind: 'taken', key: 'another', from: t, how: 'restart', closed: true }]
}

/** A call is refused because some servers did not answer. */
export const failedCall: Mutation = events => {
  const request = events.findLast(event => event.kind === 'request')
  if (!request) return undefined
  const asked = { ...request, attempt: 'failing', owner: 'failing', t: request.t + 0.01 } as const
  const { worker, attempt } = asked
  return [
    ...events,
    asked,
    { t: asked.t + 0.01, kind: 'end', worker, attempt, how: 'failed', error: '2 of 5 answered' },
  ]
}

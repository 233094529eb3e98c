/** What one client, one lock and one waiter cost in the run of scripts/scale. Other figures are computed from this. */
import type { Scale, Spent } from '../scale/figures.ts'

export interface Unit {
  readonly what: string
  /** The memory that one such client, lock or waiter needs, in bytes. */
  readonly bytes: Spent
  /** The CPU that one such client, lock or waiter uses while nothing happens, in µs per second. */
  readonly idling: Spent
}

const nothing: Spent = { client: 0, server: 0 }

export function units(scale: Scale): readonly Unit[] {
  const { held, parked } = scale
  const [connected, holding] = [step(scale, 'connected'), step(scale, 'each holds a lock')]
  const of = ({ client, server }: Spent, count: number) => ({ client: client / count, server: server / count })
  return [
    {
      what: 'a client that neither holds nor waits',
      bytes: connected.bytes,
      idling: of(connected.idling, connected.clients),
    },
    {
      what: 'the same with one held lock',
      bytes: plus(connected.bytes, holding.bytes),
      idling: of(holding.idling, holding.clients),
    },
    { what: 'a held lock more, of many', bytes: held.bytes, idling: of(held.renewing, held.locks) },
    { what: 'a free lock that Redis remembers', bytes: { client: 0, server: held.freeBytes }, idling: nothing },
    ...parked.map(({ what, bytes, idling, waiters }) => ({
      what: `a waiter, ${what}`,
      bytes,
      idling: of(idling, waiters),
    })),
  ]
}

/** Returns the figures that scripts/scale/fleet.ts measured for the step `what` with the largest number of clients. */
export function step({ fleet }: Scale, what: string): Scale['fleet'][number] {
  const most = Math.max(...fleet.map(({ clients }) => clients))
  return fleet.find(step => step.what === what && step.clients === most)!
}

function plus(a: Spent, b: Spent): Spent {
  return { client: a.client + b.client, server: a.server + b.server }
}

/** Computes which resource of a server runs out first, from the cost of one client, one lock or one waiter. */
import type { Scale } from '../scale/figures.ts'
import { step, units } from './units.ts'

/** CPU that one core has per second, in µs. */
const CORE = 1e6
const GIGABYTE = 2 ** 30
/** By default, Redis accepts MAXCLIENTS connections. Each client of redis-baton uses CONNECTIONS connections. */
const MAXCLIENTS = 10_000
const CONNECTIONS = 2

export interface Limit {
  readonly what: string
  readonly core: number
  readonly gigabyte: number
}

export function limits(scale: Scale): readonly Limit[] {
  const busy = step(scale, 'all take locks of their own')
  const things = units(scale).map(({ what, bytes, idling }) => ({
    what,
    core: idling.server > 0 ? CORE / idling.server : Number.POSITIVE_INFINITY,
    gigabyte: bytes.server > 0 ? GIGABYTE / bytes.server : Number.POSITIVE_INFINITY,
  }))
  const each = {
    what: 'a lock and release, a second',
    core: CORE / busy.cycle!.server,
    gigabyte: Number.POSITIVE_INFINITY,
  }
  return [each, ...things]
}

/**
 * Returns what a server needs for the largest number of clients that Redis accepts by default: the CPU as a `share` of
 * one core, and the memory in bytes. Each client takes and releases one lock per second, and holds another lock.
 */
export function onePerClient(scale: Scale): { clients: number; share: number; memory: number } {
  const clients = MAXCLIENTS / CONNECTIONS
  const { bytes, idling } = units(scale).find(({ what }) => what === 'the same with one held lock')!
  const busy = step(scale, 'all take locks of their own')
  return {
    clients,
    share: (clients * (idling.server + busy.cycle!.server)) / CORE,
    memory: clients * bytes.server,
  }
}

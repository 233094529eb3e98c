/** Decodes the reply of lua/mutex/inspect.lua. */

import type { Found, Traits } from '../../kind.ts'
import { decodeClaim, decodeHolder } from '../claim.ts'
import { decodePace, placed, waitFor } from '../expected.ts'
import {
  decodeQueue,
  firstOf,
  type LockState,
  type Moment,
  pairs,
  type StatePage,
  type WaiterState,
  waitersOf,
} from '../state.ts'

export function decodeState(key: string, values: unknown[], moment: Moment): StatePage {
  const [nowText, holder, holds, queue, deadlines, stored, clock] = values as [
    string,
    string | null,
    number | null,
    string[],
    string[],
    string | null,
    string | null,
  ]
  const nowMicros = Number(nowText)
  const [claim, ticket] = queue.slice(-2)
  const state = stateOf(key, holder ?? '', holds ?? 1, Math.floor(nowMicros / 1000))
  for (const { id, fencingToken } of state.holders) moment.adds(id, fencingToken)
  const before = moment.present
  const queued = decodeQueue(queue, decodeClaim, moment)
  moment.read(nowMicros, Number(clock))
  return {
    state,
    waiters: waitersOf(queued, new Map(pairs(deadlines)), nowMicros),
    size: moment.present > before ? queue.length / 2 : 0,
    pace: decodePace(stored),
    last: claim === undefined || ticket === undefined ? undefined : { claim, ticket },
  }
}

function stateOf(key: string, holder: string, holds: number, now: number): StatePage['state'] {
  const known = decodeHolder(holder)
  if (!known || known.until < now) return { key, kind: 'mutex', ...firstOf([]), holders: [] }
  const { token: fencingToken, until, claim } = known
  const { id, owner, label } = claim
  const ttl = until - now
  const heldFor = Math.max(0, now - Math.floor(fencingToken / 1000))
  const holders = [{ id, owner, label, fencingToken, heldFor, ttl }]
  return { key, kind: 'mutex', ...firstOf(holders), holds, holders }
}

/** Of several holds of the owner, the first one is shown, with the end of the latest lease. */
export function stateOfMutex(key: string, { holders: [first, ...more], waiters, pace }: Found): LockState {
  const holders = first ? [{ ...first, ttl: Math.max(first.ttl, ...more.map(({ ttl }) => ttl)) }] : []
  const holds = holders.length + more.length
  return { key, kind: 'mutex', ...firstOf(holders), holds, holders, waiters: inTurn(waiters, { holders, pace }) }
}

/** Returns the waiters, in the order of the queue, with their expected waits. */
export function inTurn(waiters: readonly WaiterState[], found: Pick<Found, 'holders' | 'pace'>): WaiterState[] {
  return placed(waiters, found, (at, pace) => expectsMutex(at, pace, undefined))
}

export const expectsMutex: Traits['expects'] = ({ position, age }, { hold }) => waitFor(position, hold, hold, age)

/** Makes pictures for tests. A picture is the data about locks that `baton top` and `baton ui` draw. */
import { type Picture, pictureOf, type SeenLock, seen } from '../../../cli/live/picture.ts'
import type { GroupState, HolderState, WaiterState } from '../../../src/index.ts'

/** The server's time in every picture, in ms. */
const NOW = 1_000_000

interface Shown {
  readonly label?: string
  /** How long the holder has held the lock, in ms. */
  readonly heldFor?: number
  readonly ttl?: number
  /** How long each waiter has waited, in ms, beginning with the head of the queue. */
  readonly waits?: readonly number[]
}

/** Makes a mutex. It is held, unless `ttl` is 0. */
export function lockSeen(
  key: string,
  { label = 'someone', heldFor = 1_000, ttl = 20_000, waits = [] }: Shown = {},
): SeenLock {
  const waiters = waits.map(waiter)
  if (ttl === 0) return seen({ key, kind: 'mutex', locked: false, holds: 0, holders: [], waiters })
  const holders = [holder({ label, heldFor, ttl })]
  const [{ id, heldFor: _, ...who }] = holders as [HolderState]
  return seen({ key, kind: 'mutex', locked: true, ...who, holds: 1, holders, waiters })
}

type ShownHolder = Partial<Pick<HolderState, 'id' | 'label' | 'heldFor' | 'ttl' | 'mode' | 'permits'>>

/** Makes a read-write lock whose waiters are writers. */
export function readWriteSeen(key: string, holders: readonly ShownHolder[], waits: readonly number[] = []): SeenLock {
  const waiters = waits.map((waited, i) => ({ ...waiter(waited, i), mode: 'write' as const }))
  return sharedSeen({ key, kind: 'readWrite' }, holders.map(holder), waiters)
}

/**
 * Makes a semaphore with these groups. Each has one holder and one waiter, and the waiter of a full group waits for its
 * group. Each waiter has an estimate.
 */
export function groupsSeen(key: string, groups: readonly GroupState[]): SeenLock {
  const holders = groups.map(({ group }) => ({ ...holder({ permits: 1 }), group }))
  const waiters = groups.map(({ group, taken, limit }, i) => {
    const why: WaiterState['why'] = taken === limit ? 'group' : 'turn'
    return { ...waiter(3_000, i), permits: 1, group, why, expected: 12_000 }
  })
  const named = { key, kind: 'semaphore', permits: 50, taken: groups.length, groups } as const
  return sharedSeen(named, holders, waiters)
}

type Named = Pick<SeenLock, 'key' | 'kind' | 'permits' | 'taken' | 'groups'>

function sharedSeen(named: Named, holders: readonly HolderState[], waiters: readonly WaiterState[]): SeenLock {
  const { owner, label, fencingToken, ttl } = holders[0] ?? {}
  const first = owner === undefined ? {} : { owner, label, fencingToken, ttl }
  return seen({ ...named, locked: holders.length > 0, ...first, holds: holders.length, holders, waiters } as SeenLock)
}

export function picture(...locks: SeenLock[]): Picture {
  return pictureOf(locks)
}

function holder({ id = 'an id', label = 'someone', heldFor = 1_000, ttl = 20_000, ...what }: ShownHolder): HolderState {
  return { id, owner: 'an owner', label, ...what, fencingToken: (NOW - heldFor) * 1_000, heldFor, ttl }
}

function waiter(waited: number, i: number): WaiterState {
  const position = i + 1
  return {
    id: `id-${position}`,
    owner: `owner-${position}`,
    label: `waiter-${position}`,
    position,
    waited,
    expiresIn: 9_000,
  }
}

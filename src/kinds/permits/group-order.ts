/**
 * The order of the next grants of a semaphore with groups, for `inspect`. Redis does not keep this order. It is found by
 * letting the groups take turns, from what Redis knows of each group.
 */
import type { Found, Pace, Standing, Turns as Tags } from '../../kind.ts'
import type { GroupState, WaiterState } from '../../lock-state.ts'
import { type Line, Turns } from './turns.ts'

/** So many turns are taken in one go. */
const AT_ONCE = 1_000

interface Entry {
  readonly id: string
  readonly group?: string
  readonly permits?: number
  readonly heldFor?: number
}

interface Group extends Line {
  readonly group: string
  readonly waiters: WaiterState[]
}

/**
 * Returns the groups, and the waiters in the order of grants as of now. `waiters`: those of each group in the order of
 * their tickets. `expects` estimates the wait of a waiter; if its group is full, by the limit of the group. `pause`: lets
 * the process do something else, because many waiters take long.
 */
export async function inTurn(
  holders: readonly Entry[],
  { waiters, pace }: Pick<Found, 'waiters' | 'pace'>,
  { virtual, shares, asked }: Tags,
  expects: (at: Standing, pace: Pace, waiter: WaiterState, of?: number) => number,
  pause?: () => Promise<void>,
): Promise<{ groups: GroupState[]; waiters: WaiterState[] }> {
  const lines = new Map<string, Group>()
  const taken = new Map<string, number>()
  const newest = new Map<string, { readonly at: number; readonly limit: number | undefined }>()
  for (const { id, group = '' } of [...holders, ...waiters]) {
    const { finish = 0, weight = 1 } = shares.get(group) ?? {}
    if (!lines.has(group)) lines.set(group, { group, waiters: [], weight, finish, ticket: 0, slot: -1, dueAt: 0 })
    const call = asked.get(id)
    if (call && call.at >= (newest.get(group)?.at ?? 0)) newest.set(group, call)
  }
  for (const { group = '', permits = 0 } of holders) taken.set(group, (taken.get(group) ?? 0) + permits)
  for (const waiter of waiters) lines.get(waiter.group ?? '')?.waiters.push(waiter)

  const isFull = ({ group, waiters: [first] }: Group) => {
    const limit = first && asked.get(first.id)?.limit
    return limit !== undefined && (taken.get(group) ?? 0) + (first?.permits ?? 0) > limit
  }
  const groups = [...lines.values()].map(({ group, waiters, weight }): GroupState => {
    const limit = newest.get(group)?.limit
    return {
      group,
      taken: taken.get(group) ?? 0,
      ...(limit !== undefined && { limit }),
      weight,
      waiting: waiters.length,
    }
  })
  const waiting = [...lines.values()].filter(line => line.waiters.length > 0)
  const names = new Set(waiting.filter(isFull).map(({ group }) => group))
  const ordered: WaiterState[] = []
  // The waiters of full groups are last.
  for (const last of [false, true]) {
    const turns = new Turns<Group>(virtual)
    const settle = (line: Group) => {
      const first = line.waiters.at(-1)
      turns.settle(line, first && (asked.get(first.id)?.at ?? 0))
    }
    for (const line of waiting) {
      if (names.has(line.group) === last) {
        line.waiters.reverse()
        settle(line)
      }
    }
    for (let line = turns.first; line; line = turns.first) {
      const waiter = line.waiters.pop() as WaiterState
      turns.granted(line, waiter.permits ?? 0)
      settle(line)
      if (ordered.push(waiter) % AT_ONCE === 0) await pause?.()
    }
  }
  const age = Math.max(0, ...holders.map(({ heldFor = 0 }) => heldFor))
  const behind = new Map<string, number>()
  const expectedOf = (waiter: WaiterState, at: number): number => {
    const { group = '', id } = waiter
    const place = (behind.get(group) ?? 0) + 1
    behind.set(group, place)
    const full = names.has(group)
    const standing = { position: full ? place : at, taken: full ? taken.get(group) : undefined, age }
    return expects(standing, pace as Pace, waiter, full ? asked.get(id)?.limit : undefined)
  }
  return {
    groups: groups.sort((a, b) => (a.group < b.group ? -1 : 1)),
    waiters: ordered.map((waiter, i) => ({
      ...waiter,
      position: i + 1,
      why: names.has(waiter.group ?? '') ? 'group' : i === 0 ? 'permits' : 'turn',
      ...(pace && { expected: expectedOf(waiter, i + 1) }),
    })),
  }
}

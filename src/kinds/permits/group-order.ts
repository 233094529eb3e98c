/**
 * The order of the next grants of a semaphore with groups, for `inspect`. Redis does not keep this order. It is found by
 * letting the groups take turns, from what Redis knows of each group.
 */
import type { Found, Pace, Standing, GroupTags as Tags } from '../../kind.ts'
import type { GroupState, HolderState, WaiterState } from '../../lock-state.ts'
import { type Line, Turns } from './turns.ts'

/** So many turns are taken in one go. */
const AT_ONCE = 1_000

interface Group extends Line {
  readonly group: string
  readonly waiters: WaiterState[]
  taken: number
  /** The ticket or token of the newest call, and the limit that it gave. */
  newest: { readonly at: number; readonly limit: number | undefined }
  full: boolean
}

/**
 * Returns the groups, and the waiters in the order of grants as of now. `waiters`: those of each group in the order of
 * their tickets. `expects` estimates the wait of a waiter; if its group is full, by the limit of the group. `pause`: lets
 * the process do something else, because many waiters take long.
 */
export async function inTurn(
  holders: readonly HolderState[],
  { waiters, pace }: Pick<Found, 'waiters' | 'pace'>,
  { virtual, shares, asked }: Tags,
  expects: (at: Standing, pace: Pace, waiter: WaiterState, of?: number) => number,
  pause?: () => Promise<void>,
): Promise<{ groups: GroupState[]; waiters: WaiterState[] }> {
  const groups = new Map<string, Group>()
  for (const [i, entry] of [...holders, ...waiters].entries()) {
    const { id, group = '', permits = 0 } = entry
    const { finish = 0, weight = 1 } = shares.get(group) ?? {}
    const newest = { at: 0, limit: undefined }
    const fresh = { group, waiters: [], taken: 0, newest, full: false, weight, finish, ticket: 0, slot: -1, dueAt: 0 }
    const found = groups.get(group) ?? fresh
    groups.set(group, found)
    const call = asked.get(id) ?? newest
    if (call.at >= found.newest.at) found.newest = call
    if (i < holders.length) found.taken += permits
    else found.waiters.push(entry as WaiterState)
  }
  for (const found of groups.values()) {
    const [first] = found.waiters
    const limit = first && asked.get(first.id)?.limit
    found.full = limit !== undefined && found.taken + (first?.permits ?? 0) > limit
  }
  const states = [...groups.values()].map(({ group, taken, newest: { limit }, weight, waiters }): GroupState => {
    return { group, taken, ...(limit !== undefined && { limit }), weight, waiting: waiters.length }
  })
  const ordered: WaiterState[] = []
  // The waiters of full groups are last.
  for (const last of [false, true]) {
    const turns = new Turns<Group>(virtual)
    const settle = (line: Group) => {
      const first = line.waiters.at(-1)
      turns.settle(line, first && (asked.get(first.id)?.at ?? 0))
    }
    for (const line of groups.values()) {
      if (line.full !== last) continue
      line.waiters.reverse()
      settle(line)
    }
    for (let line = turns.first; line; line = turns.first) {
      const waiter = line.waiters.pop() as WaiterState
      turns.granted(line, waiter.permits ?? 0)
      settle(line)
      if (ordered.push(waiter) % AT_ONCE === 0) await pause?.()
    }
  }
  const age = Math.max(0, ...holders.map(({ heldFor }) => heldFor))
  const behind = new Map<string, number>()
  return {
    groups: states.sort((a, b) => (a.group < b.group ? -1 : 1)),
    waiters: ordered.map((waiter, i) => {
      const { group = '', id } = waiter
      const { full = false, taken } = groups.get(group) ?? {}
      const position = i + 1
      const place = (behind.get(group) ?? 0) + 1
      behind.set(group, place)
      const at = full ? { position: place, taken, age } : { position, taken: undefined, age }
      const expected = pace && expects(at, pace, waiter, full ? asked.get(id)?.limit : undefined)
      const why = full ? 'group' : i === 0 ? 'permits' : 'turn'
      return { ...waiter, position, why, ...(expected !== undefined && { expected }) }
    }),
  }
}

/**
 * The order of the next grants of a semaphore with groups, for `inspect`. Redis does not keep this order. It is found by
 * the rule of lua/permits/semaphore/groups/settle.lua, from what Redis knows of each group.
 */
import type { Found, Pace, Standing, Turns } from '../../kind.ts'
import type { GroupState, WaiterState } from '../../lock-state.ts'

interface Entry {
  readonly id: string
  readonly group?: string
  readonly permits?: number
  readonly heldFor?: number
}

interface Line {
  readonly group: string
  readonly waiters: WaiterState[]
  readonly weight: number
  finish: number
}

/**
 * Returns the groups, and the waiters in the order of grants as of now. `waiters`: those of each group in the order of
 * their tickets. `expects` estimates the wait of a waiter; if its group is full, by the limit of the group.
 */
export function inTurn(
  holders: readonly Entry[],
  { waiters, pace }: Pick<Found, 'waiters' | 'pace'>,
  { virtual, shares, asked }: Turns,
  expects: (at: Standing, pace: Pace, waiter: WaiterState, of?: number) => number,
): { groups: GroupState[]; waiters: WaiterState[] } {
  const lines = new Map<string, Line>()
  const taken = new Map<string, number>()
  const newest = new Map<string, { readonly at: number; readonly limit: number | undefined }>()
  for (const { id, group = '' } of [...holders, ...waiters]) {
    const { finish = 0, weight = 1 } = shares.get(group) ?? {}
    if (!lines.has(group)) lines.set(group, { group, waiters: [], weight, finish })
    const call = asked.get(id)
    if (call && call.at >= (newest.get(group)?.at ?? 0)) newest.set(group, call)
  }
  for (const { group = '', permits = 0 } of holders) taken.set(group, (taken.get(group) ?? 0) + permits)
  for (const waiter of waiters) lines.get(waiter.group ?? '')?.waiters.push(waiter)

  const isFull = ({ group, waiters: [first] }: Line) => {
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
  const full = waiting.filter(isFull)
  const ordered = [
    ...turnsOf(
      waiting.filter(line => !full.includes(line)),
      virtual,
      asked,
    ),
    ...turnsOf(full, virtual, asked),
  ]
  const names = new Set(full.map(({ group }) => group))
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

/** Lets the groups take turns until all their waiters have been granted. Empties the lines. */
function turnsOf(lines: readonly Line[], virtual: number, asked: Turns['asked']): WaiterState[] {
  const order: WaiterState[] = []
  const ticketOf = ({ waiters: [first] }: Line) => asked.get(first?.id ?? '')?.at ?? 0
  let open = lines
  let now = virtual
  while (open.length > 0) {
    const startOf = ({ finish }: Line) => Math.max(now, finish)
    const next = open.reduce((best, line) => {
      const later = startOf(line) - startOf(best) || ticketOf(line) - ticketOf(best)
      return later < 0 ? line : best
    })
    const waiter = next.waiters.shift() as WaiterState
    now = startOf(next)
    next.finish = now + (waiter.permits ?? 0) / next.weight
    order.push(waiter)
    if (next.waiters.length === 0) open = open.filter(line => line !== next)
  }
  return order
}

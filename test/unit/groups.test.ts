/** Tests the turns of groups: their order, as `inspect` shows it, and that it is found in few steps. */
import { describe, expect, test } from 'vitest'
import type { Found, Share } from '../../src/kind.ts'
import { stateOfSemaphore } from '../../src/kinds/permits/inspection.ts'
import { among } from '../../src/kinds/permits/turns.ts'
import type { HolderState, WaiterState } from '../../src/lock-state.ts'
import type { Asked } from '../../src/memory/entries.ts'
import { type Hub, MemoryLock } from '../../src/memory/lock.ts'
import { Random } from '../kit/random.ts'
import { FakeClock } from './fake-clock.ts'

class CountingMap<K, V> extends Map<K, V> {
  reads = 0

  override get(key: K): V | undefined {
    this.reads += 1
    return super.get(key)
  }
}

type Calls = CountingMap<string, { at: number; limit: number | undefined }>
interface Scene {
  readonly found: Found
  readonly calls: Calls
}

function waiterOf(id: string, group: string, permits = 1): WaiterState {
  return { id, owner: id, label: '', group, permits, position: 0, waited: 0, expiresIn: 1_000 }
}

function sceneOf(
  waiters: readonly WaiterState[],
  shares: ReadonlyMap<string, Share>,
  virtual: number,
  limits: ReadonlyMap<string, number>,
  holders: readonly HolderState[] = [],
): Scene {
  const calls: Calls = new CountingMap()
  for (const [at, { id, group = '' }] of [...holders, ...waiters].entries())
    calls.set(id, { at, limit: limits.get(group) })
  return { calls, found: { holders, waiters, permits: 1, pace: undefined, turns: { virtual, shares, asked: calls } } }
}

const shown = async ({ found }: Scene, pause?: () => Promise<void>) =>
  (await stateOfSemaphore('key', found, () => 0, pause)).waiters

/** The order of turns, found by looking at all groups for each of them. */
function turnsOf({ found: { waiters, turns }, calls }: Scene, full: ReadonlySet<string>): string[] {
  const order: string[] = []
  for (const last of [false, true]) {
    const left = waiters.filter(({ group = '' }) => full.has(group) === last)
    const finishes = new Map([...turns!.shares].map(([name, { finish }]) => [name, finish]))
    let now = turns!.virtual
    const startOf = ({ group = '' }: WaiterState) => Math.max(now, finishes.get(group) ?? 0)
    while (left.length > 0) {
      const firsts = left.filter((each, i) => left.findIndex(({ group }) => group === each.group) === i)
      const next = firsts.sort((a, b) => startOf(a) - startOf(b) || calls.get(a.id)!.at - calls.get(b.id)!.at)[0]!
      now = startOf(next)
      finishes.set(next.group!, now + next.permits! / turns!.shares.get(next.group!)!.weight)
      left.splice(left.indexOf(next), 1)
      order.push(next.id)
    }
  }
  return order
}

describe('the order of the next grants', () => {
  test('is that of start-time fair queuing, with the waiters of full groups last', async () => {
    const random = new Random(7)
    for (let round = 0; round < 60; round++) {
      const names = Array.from({ length: random.int(1, 8) }, (_, i) => `g${i}`)
      const shares = new Map(
        names.map(name => [name, { finish: random.int(0, 5) / 2, weight: random.pick([0.5, 1, 3]) }]),
      )
      const full = new Set(names.filter(() => random.chance(0.25)))
      const limits = new Map([...full].map(name => [name, 0]))
      const waiters = Array.from({ length: random.int(1, 40) }, (_, i) =>
        waiterOf(`w${i}`, random.pick(names), random.int(1, 3)),
      )
      const scene = sceneOf(waiters, shares, random.int(0, 3), limits)
      expect((await shown(scene)).map(({ id }) => id)).toEqual(turnsOf(scene, full))
    }
  })

  // With a look at each group for each grant, it would take two million steps.
  test('of many groups is found in few steps, with pauses', async () => {
    const many = 2_000
    const waiters = Array.from({ length: 2 * many }, (_, i) => waiterOf(`w${i}`, `g${i % many}`))
    const shares = new Map(waiters.map(({ group = '' }) => [group, { finish: 0, weight: 1 }]))
    const limits = new Map(waiters.slice(0, many / 2).map(({ group = '' }) => [group, 0]))
    const scene = sceneOf(waiters, shares, 0, limits)
    let pauses = 0
    const order = await shown(scene, async () => {
      pauses += 1
    })
    expect(order).toHaveLength(2 * many)
    expect(scene.calls.reads).toBeLessThan(20 * many)
    expect(pauses).toBeGreaterThanOrEqual(3)
  })
})

test('the place of the last caller of a group is estimated from the groups that are described', async () => {
  const random = new Random(11)
  for (let round = 0; round < 60; round++) {
    const names = Array.from({ length: random.int(1, 8) }, (_, i) => `g${i}`)
    const shares = new Map(
      names.map(name => [name, { finish: random.int(3, 9) / 2, weight: random.pick([0.5, 1, 4]) }]),
    )
    const waiters = Array.from({ length: random.int(1, 60) }, (_, i) => waiterOf(`w${i}`, random.pick(names)))
    const { group: own = '', id } = waiters.at(-1)!
    const position = (await shown(sceneOf(waiters, shares, 1, new Map()))).findIndex(waiter => waiter.id === id) + 1
    const all = names.map((name, i) => {
      const { finish, weight } = shares.get(name)!
      return [i, finish, weight, waiters.filter(({ group }) => group === name).length] as const
    })
    const [i, start, rate, place] = all[names.indexOf(own)]!
    const some = all.filter(([, , , waiting]) => waiting > 0)
    const others = some.filter(([other, first]) => other !== i && first <= start + (place - 1) / rate).length
    expect(among([waiters.length, some], [i, start, rate, others], place, 5)).toEqual([position, 5])
    // Of twice as many groups, half are described.
    const [doubled] = among([2 * waiters.length, some], [i, start, rate, 2 * others], place, 5)
    expect(doubled - place).toBe(2 * (position - place))
    expect(among([waiters.length, some], [3], place, 5)).toEqual([place, 3])
  }
})

test('in memory, a grant takes few steps, however many groups wait', () => {
  const many = 1_000
  let [steps, tick] = [0, 0]
  const granted: string[] = []
  const hub: Hub = {
    clock: { background: new FakeClock() },
    now: () => 0,
    tick: () => ++tick,
    timeOf: () => 0,
    last: 0,
    reaches() {
      steps += 1
      return true
    },
    won: id => granted.push(id),
    taken() {},
    free: () => 0,
    entered() {},
    ends() {},
    idle() {},
  }
  const lock = new MemoryLock('lock', 'key', false, hub)
  const asked = (id: string, name: string): Asked => ({
    key: 'key',
    id,
    owner: id,
    label: '',
    lease: 1_000,
    headStart: 0,
    permits: 1,
    of: 1,
    group: { name, limit: undefined, weight: undefined },
    mode: undefined,
    numbered: false,
    waiterTtl: 1_000,
  })
  lock.ask(asked('first', 'first'), true, false)
  const ids = Array.from({ length: many }, (_, i) => `w${i}`)
  for (const id of ids) lock.ask(asked(id, id), true, false)
  for (const id of ['first', ...ids]) lock.release(id)
  expect(granted).toEqual(ids)
  expect(steps).toBeLessThan(30 * many)
})

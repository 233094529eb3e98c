/** Tests several kinds of locks in one client: each kind has its own locks, with their own waiters and leases. */
import { expect } from 'vitest'
import type { KindDefinition } from '../../src/kind.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import type { LockState } from '../../src/kinds/state.ts'
import type { RedisSource } from '../../src/redis/clients.ts'
import { type FlagState, flag } from '../kit/flag.ts'
import { Member, twin } from '../kit/member.ts'
import { collect } from '../kit/outcomes.ts'
import { place } from '../kit/place.ts'
import { test } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'

const source = () => place().source() as RedisSource

test('a key names a different lock in each kind', async ({ key }) => {
  const member = new Member(source())
  const leases = await Promise.all([mutex, twin, flag].map(kind => member.lock(kind, key)))
  expect(leases.map(({ held }) => held)).toEqual([true, true, true])
  for (const kind of [mutex, twin, flag]) {
    await expect(member.lock(kind, key, { timeout: 0 })).rejects.toThrow('somebody else has it')
  }
  expect(member.session.stats()).toMatchObject({ holding: 3, acquired: 3 })

  const [first, second] = leases
  await first?.release()
  expect(await member.taken(key)).toEqual([false, true, true])
  const every = [mutex, twin, flag] as KindDefinition<LockState | FlagState>[]
  const listed = await collect(member.session.list(every, key))
  expect(listed.map(state => ('up' in state ? 'flag' : state.kind)).sort()).toEqual(['flag', 'mutex'])
  await second?.release()
  await member.session.close(0)
  expect(leases[2]?.held).toBe(false)
})

test.for([true, false])('a release goes to a waiter of the same kind (fair: %s)', async (fair, { key }) => {
  const [holder, other] = [new Member(source()), new Member(source())]
  const kinds = fair ? [mutex, twin] : [mutex, twin, flag]
  const held = await Promise.all(kinds.map(kind => holder.lock(kind, key)))
  const granted: number[] = []
  const waiting = kinds.map(async (kind, i) => {
    const lease = await other.lock(kind, key, { fair, fairAfter: Number.POSITIVE_INFINITY })
    granted.push(i)
    return lease
  })
  await eventually(() => other.parked === kinds.length)
  for (const [i, lease] of [...held.entries()].reverse()) {
    await lease.release()
    const next = await waiting[i]
    expect([next?.via, granted.at(-1), granted.length]).toEqual([fair ? 'handoff' : 'wakeup', i, kinds.length - i])
  }
})

test('each lease is renewed, and lost, by its own kind', async ({ key }) => {
  const member = new Member(source())
  const short = { lease: 900, renew: true }
  const leases = await Promise.all([mutex, twin, flag].map(kind => member.lock(kind, key, short)))
  await eventually(() => member.session.stats().renewed >= 9, 10_000)
  expect(leases.map(({ held }) => held)).toEqual([true, true, true])
  for (const lease of leases) await lease.release()
  const [first, second, third] = await Promise.all([mutex, twin, flag].map(kind => member.lock(kind, key)))
  expect(await member.session.locks(twin).kind.inspection.forceRelease(key)).toBe(true)
  await eventually(() => second?.signal.aborted === true)
  expect([first?.held, third?.held]).toEqual([true, true])
})

/** Tests named owners, which may hold and wait in several calls, clients and processes at the same time. */
import { describe, expect } from 'vitest'
import type { Lease, LockClient } from '../../src/index.ts'
import { heard, promptly } from '../kit/outcomes.ts'
import { park, queueOf } from '../kit/parking.ts'
import { clients, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { takeAndVanish } from './leases.ts'

describe('an owner with several waiting calls (I4)', () => {
  const ways = {
    'in the queue': { fair: true },
    'in the line': { fairAfter: 600_000 },
    'in the line, then in the queue': { fairAfter: 50 },
  }

  describe.each(Object.entries(ways))('%s', (_, options) => {
    test.for([
      { where: 'one client', of: 1 },
      { where: 'two clients', of: 2 },
    ])('enters with all waiting calls when one is granted, from $where', async ({ of }, { key }) => {
      const [other, ...own] = clients(1 + of) as [LockClient, ...LockClient[]]
      const holder = await other.lock(key)
      const waits = own.map(locks => heard(locks, 'waiting'))
      const calls = [0, 1, 2].map(i => own[i % of]!.lock(key, { owner: 'me', ...options }))
      await eventually(() => waits.flat().length >= 3)
      if ('fairAfter' in options && options.fairAfter < 1_000) await queueOf(other, key, 3)
      await holder.release()

      const leases = (await promptly(Promise.all(calls))) as Lease[]
      expect(new Set(leases.map(lease => lease.fencingToken)).size).toBe(1)
      expect(leases.map(lease => lease.held)).toEqual([true, true, true])
      const [first, ...others] = leases as [Lease, ...Lease[]]
      await first.release()
      expect(await other.tryLock(key, { timeout: 0 })).toBeNull()
      for (const lease of others) await lease.release()
      expect(await other.inspect(key)).toMatchObject({ locked: false, waiters: [] })
    })
  })

  test('keeps other owners out until all its calls have ended, and then lets them in', async ({ key }) => {
    const [other, own] = clients(2) as [LockClient, LockClient]
    const holder = await other.lock(key)
    const first = await park(own, key, { fair: true, owner: 'me' })
    const next = await park(other, key, { fair: true })
    const second = await park(own, key, { fair: true, owner: 'me' })
    await holder.release()
    const [a, b] = await promptly(Promise.all([first.lease, second.lease]))
    expect(await queueOf(other, key, 1)).toMatchObject({ owner: 'me', holds: 2 })
    await a.release()
    await b.release()
    expect((await promptly(next.lease)).via).toBe('handoff')
  })
})

describe('a hold of an owner whose process has died (I4, I7)', () => {
  test('ends with its own lease, however often the owner returns elsewhere', async ({ key }) => {
    const [own, other] = clients(2) as [LockClient, LockClient]
    await takeAndVanish(key, { owner: 'me', lease: 1_000 })
    const next = await park(other, key, { fair: true })
    let granted: Lease | undefined
    next.lease.then(lease => {
      granted = lease
    })
    const begun = performance.now()
    while (!granted && performance.now() - begun < 10_000) {
      const lease = await own.tryLock(key, { owner: 'me', lease: 1_000 })
      await sleep(100)
      await lease?.release()
    }
    expect(granted?.held).toBe(true)
  })
})
